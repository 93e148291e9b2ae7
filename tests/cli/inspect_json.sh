# JSON on stdout alone, with the numbers as numbers.
"$HONE" inspect zoo:mlp --format json >out 2>err
[[ ! -s err ]]
grep -q '"name": "mlp"' out
grep -Eq '"parameters": [0-9]+,' out
grep -q '"dtype": "f32"' out
[[ $(head -c 1 out) == "{" && $(tail -n 1 out) == "}" ]]
