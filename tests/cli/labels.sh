# hone shows the labels that numbers of a model of scikit-learn stand for.
source "$ROOT/tests/cli/expect.bash"
folder=$ROOT/tests/front/sklearn

# Strings and the columns of a ZipMap have their names.
says "" run "$folder/logistic.onnx" --inputs "$folder/logistic_in.npz"
contains "^output_label +i64\[16\] .* (birch|oak|pine), (birch|oak|pine), "
contains "^columns of output_probability: birch, oak, pine$"
says "" run "$folder/logistic_numbers.onnx" --inputs "$folder/logistic_numbers_in.npz"
contains "^output_label +i64\[16\] .* (0|10|20), (0|10|20), "
contains "^columns of output_probability: 0, 10, 20$"

# Inputs of strings are places in the table that inspect prints; -1 is a string that it lacks.
says "" inspect "$folder/people.onnx"
contains '^strings of sex: 0 no, 1 yes, 2 f, 3 m, 4 Cork, 5 Quay, old, 6 Sund$'
contains '^columns of output_probability: no, yes$'
says "" run "$folder/people.onnx" --inputs "$folder/people_in.npz"
contains "^output_label .* (no|yes), (no|yes), (no|yes), (no|yes), \.\.\.$"
says "columns of output_probability" inspect "$folder/people.onnx" --format json

# Everything that is made of the model has numbers alone.
says "" compile "$folder/logistic.onnx" -o logistic.honec
says "" run logistic.honec --inputs "$folder/logistic_in.npz" \
  --expect "$folder/logistic_out.npz"
contains "^ok output_label"
