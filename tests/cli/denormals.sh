# Denormal weights are told, and --flush-denormals takes them for 0.

cat > small.hone <<'END'
graph @small(%x: f32[4]) -> f32[4] {
  %w = constant [1e-40, 2e-41, 1, 0] : f32[4]
  %y = mul %x, %w
  return %y
}
END

"$HONE" inspect small.hone > text.txt
grep -q '2 of 4 weights are denormal numbers' text.txt
"$HONE" inspect small.hone --format json > text.json 2> talk.txt
grep -q '"nodes"' text.json
grep -q '2 of 4 weights are denormal numbers' talk.txt

run() { "$HONE" run small.hone --input x='4xf32=1 2 3 4' "$@" > out.txt 2> talk.txt; }
run
grep -q '9.9999.e-41' out.txt
run --flush-denormals
grep -q '0, 0, 3, 0' out.txt
grep -q "changes outputs by up to 1e-40 (in 'y': 0, exactly 9.9999" talk.txt

"$HONE" bench small.hone --seconds 0.01 > out.txt 2> talk.txt
grep -q -e '--flush-denormals takes them for 0' talk.txt
"$HONE" bench small.hone --seconds 0.01 --flush-denormals > out.txt 2> talk.txt
grep -q 'denormals are taken for 0' talk.txt

status=0
run --flush-denormals --backend reference || status=$?
[[ $status == 2 ]]

# Products of bf16 may take two numbers at a time then.
cat > pair.hone <<'END'
graph @pair(%x: bf16[16, 64], %w: bf16[64, 64]) -> f32[16, 64] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0], accumulate = f32}
  return %y
}
END
plan() { "$HONE" compile pair.hone --threads 1 --emit plan -o - "$@" 2> talk.txt; }
plan > exact.plan
plan --flush-denormals > flushed.plan
if grep -qE 'products = (pairs|matrix)' exact.plan; then exit 1; fi
if "$HONE" target show | grep -q avx512_bf16; then
  grep -qE 'products = (pairs|matrix)' flushed.plan
fi
"$HONE" check pair.hone --flush-denormals > out.txt
"$HONE" run pair.hone --flush-denormals --plan flushed.plan > out.txt 2> talk.txt
grep -q 'denormals are taken for 0, which changes' talk.txt
# Their plan is for a graph that permits it.
status=0
"$HONE" run pair.hone --plan flushed.plan > out.txt 2> talk.txt || status=$?
[[ $status == 3 ]]
grep -q "it is for this model with --flush-denormals" talk.txt
# A compiled model remembers it.
"$HONE" compile pair.hone --flush-denormals -o pair.honec > out.txt 2> talk.txt
"$HONE" inspect pair.honec > out.txt
grep -q '^denormals *taken for 0$' out.txt
"$HONE" run pair.honec --flush-denormals > out.txt 2> talk.txt
grep -q 'as when it was compiled' talk.txt
"$HONE" compile small.hone --flush-denormals -o small.honec > out.txt 2> talk.txt
"$HONE" run small.honec --input x='4xf32=1 2 3 4' > flushed.txt 2> talk.txt
"$HONE" run small.hone --input x='4xf32=1 2 3 4' --flush-denormals > out.txt 2> talk.txt
cmp flushed.txt out.txt
