# Models of scikit-learn: native code computes what ONNX Runtime does (tests/front/sklearn/make.py).
source "$ROOT/tests/cli/expect.bash"
folder=$ROOT/tests/front/sklearn

count=0
for model in "$folder"/*.onnx; do
  base=${model%.onnx}
  code=0
  hone check "$model" --inputs "${base}_in.npz" --expect "${base}_out.npz" >out 2>err || code=$?
  [[ $code == 0 ]] || { echo "$model: exit code $code"; cat out err; exit 1; }
  ! grep -q "^BAD" out || { echo "$model:"; cat out; exit 1; }
  count=$((count + 1))
done
((count >= 24))
