# What is written as ONNX comes back, and computes the same.
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
