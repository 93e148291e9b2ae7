# --expect compares; the exit code tells, and the tolerance that is printed does pass.
"$HONE" run zoo:mlp,size=tiny --seed 1 -o one.npy >/dev/null 2>&1
"$HONE" run zoo:mlp,size=tiny --seed 1 --expect one.npy >out 2>/dev/null
grep -q "^ok logits against one.npy: all 20 elements agree" out

code=0
"$HONE" run zoo:mlp,size=tiny --seed 2 --expect one.npy >out 2>err || code=$?
[[ $code == 1 ]]
grep -q "^BAD logits against one.npy: 20 of 20 elements differ" out
grep -q "first at \[0, 0\]" out
grep -q "1 of 1 comparisons failed" err

read -r atol rtol < <(sed -nE 's/.*would pass at atol (\S+) with rtol (\S+), or.*/\1 \2/p' out)
"$HONE" run zoo:mlp,size=tiny --seed 2 --expect one.npy --atol "$atol" --rtol "$rtol" >/dev/null

# Rounding by the types of values is not a fault of the code.
cat >half.hone <<'END'
graph @half(%x: f32[9]) -> f32[9] {
  %a = cast %x {dtype = f16} : f16[9]
  %y = cast %a {dtype = f32} : f32[9]
  return %y
}
END
"$HONE" check half.hone >out 2>/dev/null
grep -q "native" out
"$HONE" demo half.hone >out 2>/dev/null
grep -q "ok$" out
