# Tensors that are given decide open sizes, in every command that reads a model.
cat >row.hone <<'END'
graph @row(%x: f32[N, 2], %w: f32[M]) -> (f32[N, 2], f32[M]) where N in 1..8, M in 1..8 {
  %y = neg %x
  %v = neg %w
  return %y, %v
}
END
"$HONE" convert row.hone -o row.onnx 2>err
for model in row.hone row.onnx; do
  "$HONE" run $model --input x=3x2xf32=1 --dim M=2 >out 2>err
  grep -q "y .*f32\[3, 2\]" out
  grep -q "v .*f32\[2\]" out
  "$HONE" check $model --input x=3x2xf32=1 2>err | grep >/dev/null "f32\[3, 2\]"
  "$HONE" bench $model --input x=3x2xf32=1 --dim M=2 --seconds 0.01 2>err | grep >/dev/null median
  "$HONE" compile $model --input x=3x2xf32=1 --input w=1xf32=1 2>err | grep >/dev/null "^image"
  "$HONE" convert $model --input x=3x2xf32=1 -o - 2>err | grep >/dev/null "f32\[3, 2\]"
done
"$HONE" inspect row.hone --input x=3x2xf32=1 | grep >/dev/null "at M = 1, N = 3"
"$HONE" inspect row.onnx --input x=3x2xf32=1 | grep >/dev/null "x .*f32\[3, 2\]"
# A size that is given twice is taken if both agree; if not, both numbers are named.
for model in row.hone row.onnx; do
  "$HONE" run $model --input x=3x2xf32=1 --dim N=3 --dim M=2 2>err | grep >/dev/null "f32\[3, 2\]"
  "$HONE" run $model --input x=3x2xf32=1 --shape x=3x2 2>err | grep >/dev/null "f32\[3, 2\]"
  for command in run inspect compile check; do
    code=0
    "$HONE" $command $model --input x=3x2xf32=1 --dim N=4 >out 2>err || code=$?
    [[ $code == 2 ]]
    grep -q "'x'" err
    grep -q 3 err
    grep -q "4" err
    code=0
    "$HONE" $command $model --input x=3x2xf32=1 --shape x=4x2 >out 2>err || code=$?
    [[ $code == 2 ]]
    grep -q "'x'.*4x2.*3x2" err
  done
done
# A plan for open sizes wants them open.
"$HONE" compile row.onnx --emit plan -o open.plan 2>err
"$HONE" run row.onnx --plan open.plan --input x=3x2xf32=1 2>err | grep >/dev/null "f32\[3, 2\]"
# A size that does not fit is refused.
for model in row.hone row.onnx; do
  "$HONE" run $model --input x=9x2xf32=1 2>err && exit 1
  grep -q "9 is outside of 1..8" err
  "$HONE" run $model --input x=3xf32=1 2>err && exit 1
  grep -q "'x'" err
  "$HONE" inspect $model --input z=3xf32=1 2>err && exit 1
  grep -q "no input 'z'" err
done
