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
