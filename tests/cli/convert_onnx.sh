# A model that is written as ONNX comes back, and computes the same.
"$HONE" zoo export mlp --size tiny --seed 3 -o mlp.onnx 2>err
grep -q "wrote mlp.onnx" err
"$HONE" run zoo:mlp,size=tiny,seed=3 --seed 1 -o want.npy >/dev/null 2>&1
"$HONE" run mlp.onnx --seed 1 --expect want.npy >/dev/null 2>&1

"$HONE" zoo export mlp --size tiny --seed 3 -o mlp.hone 2>/dev/null
"$HONE" convert mlp.hone --opset 13 --primitives --external-data -o old.onnx 2>err
grep -q "old.onnx.data and old.onnx" err
"$HONE" run old.onnx --seed 1 --expect want.npy >/dev/null 2>&1

# Options of ONNX files, and opsets that are none.
code=0; "$HONE" convert mlp.hone --opset 17 -o x.hone 2>err || code=$?
[[ $code == 2 ]]
grep -q -- "--opset is for ONNX files" err
code=0; "$HONE" convert mlp.hone --opset 16 -o x.onnx 2>err || code=$?
[[ $code == 2 ]]
grep -q "opset 16 is not one of 17 to 21" err
[[ ! -e x.onnx ]]

# Every command that writes ONNX files takes their options; the opset is the first byte of the
# second field of opset_import, at the end of the file.
opset() { od -An -tu1 "$1" | tr -s ' \n' '  ' | grep -Eo "66 2 16 [0-9]+ *$" | cut -d' ' -f4; }
for number in 17 18 19 20 21; do
  "$HONE" zoo export mlp --size tiny --seed 3 --opset $number -o zoo.onnx 2>/dev/null
  "$HONE" convert mlp.hone --opset $number -o converted.onnx 2>/dev/null
  "$HONE" opt mlp.hone --pass dce --opset $number -o opt.onnx 2>/dev/null
  for file in zoo converted opt; do
    [[ $(opset $file.onnx) == "$number" ]]
    "$HONE" run $file.onnx --seed 1 --expect want.npy >/dev/null 2>&1
  done
done
"$HONE" zoo export mlp --size tiny --opset 13 --primitives --external-data -o zoo.onnx 2>err
grep -q "zoo.onnx.data and zoo.onnx" err
for arguments in "zoo export mlp --size tiny --opset 17 -o x.hone" \
  "opt mlp.hone --pass dce --primitives"; do
  code=0
  # shellcheck disable=SC2086
  "$HONE" $arguments >out 2>err || code=$?
  [[ $code == 2 && ! -s out ]]
  grep -q "is for ONNX files" err
done
