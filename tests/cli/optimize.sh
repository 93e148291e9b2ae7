# hone optimize rewrites by rules that are proved, is never dearer, and says what it did.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" optimize --progress none "$@"; }

cat >f.hone <<'EOF'
graph @f(%x: f32[512, 256], %w: f32[256, 128]) -> f32[512, 128] {
  %t = transpose %x {permutation = [1, 0]}
  %u = transpose %t {permutation = [1, 0]}
  %y = dot %u, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
EOF
hone f.hone -o g.onnx --budget 10s --threads 1 --check --json out.json >out 2>err
contains "^price .* after: .* % less$"
contains "^transpose_twice +[12]$|^transpose_of_dot"
contains "^0 of [0-9]+ nodes have ops of no rule$"
contains "^ *y .* ok$"
grep -q '"before"' out.json
"$HONE" inspect g.onnx | grep -q 512

# A plan keeps the rewrites: it is for the model as it was.
"$HONE" optimize f.hone -o g.hone --budget 10s --threads 1 --rewrites f.plan --progress none >out
grep -q "^  rewrite 1 = @transpose" f.plan
"$HONE" compile f.hone --plan f.plan --threads 1 --emit plan --cache none >whole.plan
grep -q "^  rewrite 1 = @transpose" whole.plan
"$HONE" compile f.hone --plan whole.plan --threads 1 --emit plan --cache none | cmp - whole.plan
"$HONE" check f.hone --plan whole.plan --cache none >out
"$HONE" explain f.hone whole.plan --no-log --cache none >out 2>err
contains "^the graph is rewritten, [12] times?:$"
contains "^     1 @transpose"
sed 's/@transpose/@transpoze/' whole.plan >wrong.plan
fails_of() {
  code=0
  "$HONE" "${@:3}" >out 2>&1 || code=$?
  [[ $code == "$1" ]] && contains "$2"
}
fails_of 3 "no rule 'transpoze.*wrong.plan:[0-9]+, rewrite 1" compile f.hone --plan wrong.plan
sed 's/(%[a-z]*)/(%t)/' whole.plan >wrong.plan
fails_of 3 "not match at %t .*wrong.plan:[0-9]+, rewrite 1" compile f.hone --plan wrong.plan
fails_of 0 "dropped all rewrites" compile f.hone --plan wrong.plan --plan-lenient --cache none

# -O3 looks for them itself, once; -O2 and open sizes have none.
level() { "$HONE" compile "$@" --cache cache --no-log --threads 1 --rewrite-budget 5s >out 2>&1; }
level f.hone -O3 --emit plan
contains "^rewriting: .*% less by price$"
grep -q "rewrite 1" out
level f.hone -O3 --emit plan
never grep -q "^rewriting" out
grep -q "rewrite 1" out
level f.hone -O2 --emit plan
never grep -q "rewrite 1" out
level zoo:mlp,size=tiny,symbolic-batch -O3
contains "not rewritten: the size N is open"
"$HONE" run f.hone -O3 --cache cache --no-log >/dev/null 2>&1
"$HONE" check f.hone -O3 --cache cache --no-log >/dev/null 2>&1
fails_of 2 "does not go with -O3" compile f.hone -O3 --plan f.plan
fails_of 2 "is not one of" compile f.hone -O4
"$HONE" compare f.hone default rewritten --rewrite-budget 5s --cache cache --seconds 0.2 >out 2>&1
contains "rewritten"

# A value that might overflow where the model does not is left alone, unless a range of inputs is
# assumed. The plan says which; without, it is refused.
cat >three.hone <<'EOF'
graph @three(%x: f32[512, 512], %y: f32[512, 512], %z: f32[512, 1]) -> f32[512, 1] {
  %p = dot %x, %y {lhs_contract = [1], rhs_contract = [0]}
  %q = dot %p, %z {lhs_contract = [1], rhs_contract = [0]}
  return %q
}
EOF
hone three.hone -o g.hone --budget 5s >out
contains "nothing is cheaper"
hone three.hone -o g.hone --budget 5s --assume-range 1e±10 --rewrites three.plan >out
contains "^dot_associates +1$"
grep -q "^  rewrite 1 = @dot_associates(%q) range 10$" three.plan
"$HONE" compile three.hone --plan three.plan --emit graph --cache none >out 2>&1
sed 's/ range 10//' three.plan >wrong.plan
fails_of 3 "'dot_associates' might overflow or vanish at %q .*wrong.plan:2, rewrite 1" \
  compile three.hone --plan wrong.plan --cache none
hone three.hone -o g.hone --budget 5s --assume-range 1e+-30 >out
contains "nothing is cheaper"
level three.hone -O3 --emit plan
never grep -q "rewrite 1" out
level three.hone -O3 --emit plan --assume-range 1e10
grep -q "rewrite 1 = @dot_associates(%q) range 10" out
large=(--input x=512x512xf32=1e-30 --input y=512x512xf32=1e25 --input z=512x1xf32=1e15)
"$HONE" run three.hone -O3 --cache cache --no-log --rewrite-budget 5s "${large[@]}" >out 2>err
contains "^q .* 2\.621e\+15 "
for range in 10 1e+-0 1e+-99 1e+-x; do
  fails 2 "--assume-range $range: not a range" three.hone -o g.hone --assume-range "$range"
done

# On the standard output is the graph alone.
hone f.hone -o - --budget 5s >out 2>err
grep -q "^graph @f" out
never grep -q "price" out
grep -q "^price" err
"$HONE" run out >/dev/null 2>&1

# A graph that cannot be better stays as it is.
echo 'graph @h(%x: f32[8]) -> f32[8] { %y = cos %x return %y }' >h.hone
says "" h.hone -o h2.hone --budget 5s
contains "nothing is cheaper"
contains "^1 of 2 nodes have ops of no rule$"
"$HONE" convert h.hone -o - >h.text
"$HONE" convert h2.hone -o - | cmp - h.text

# A graph that is cheaper by less than the margin is not taken.
hone f.hone -o h.hone --budget 5s --margin 100 >out
contains "^price .*; the cheapest .* [0-9.]+ % less, below --margin$"
"$HONE" convert f.hone -o - >f.text
"$HONE" convert h.hone -o - | cmp - f.text
fails 2 "--margin" f.hone -o h.hone --margin -1

# Rules of one's own: verified first.
cat >good.rules <<'EOF'
rule @twice(%x: f32[M, N]) -> f32[M, N] where M in 1..4096, N in 1..4096 {
  %t = transpose %x {permutation = [1, 0]}
  %y = transpose %t {permutation = [1, 0]}
  return %y
} => {
  return %x
}
EOF
says "" f.hone -o g.hone --budget 5s --rules good.rules
contains "^twice +1$"
sed 's/return %x$/%n = neg %x return %n/; s/@twice/@wrong/' good.rules >wrong.rules
fails 1 "the rule 'wrong' is not true: at M = " f.hone -o g.hone --rules wrong.rules
cat >weak.rules <<'EOF'
rule @quotient(%x: f32[N]) -> f32[N] where N in 1..64 {
  %y = mul %x, %x
  return %y
} => {
  %a = mul %x, %x
  %b = mul %a, %a
  %y = div %b, %a
  return %y
}
EOF
says "the rule 'quotient' is left out" f.hone -o g.hone --budget 5s --rules weak.rules
contains "nothing is cheaper"
echo 'rule @bad(%x: f32[N]) {' >bad.rules
fails 3 "bad.rules:1:" f.hone -o g.hone --rules bad.rules
fails 3 "none.rules" f.hone -o g.hone --rules none.rules

# Limits, and what is refused.
says "" f.hone -o g.hone --budget 5s --max-nodes 0
contains "after"
fails 2 "--max-nodes" f.hone -o g.hone --max-nodes -1
fails 2 "not a time" f.hone -o g.hone --budget 0
fails 2 "needs --output" f.hone
fails 2 "no format '.txt'" f.hone -o g.txt
fails 2 "--check" f.hone -o - --check
fails 2 "--dim NAME=N" zoo:mlp,symbolic-batch -o g.hone
says "" zoo:mlp,size=tiny,symbolic-batch --dim N=2 -o g.hone --budget 2s
fails 3 "cannot" none.onnx -o g.hone

# Ctrl-C ends the search, which takes a minute of this model, and what was found is written.
rm -f err
"$HONE" optimize zoo:vit_b16 -o stopped.hone --budget 1h --progress json >out 2>err &
waited=0
until grep -qs "of the price" err; do
  sleep 0.05
  ((++waited < 1200)) || { cat err; exit 1; }
done
kill -INT $!
code=0
wait $! || code=$?
[[ $code == 130 ]]
contains "cancelled"
"$HONE" inspect stopped.hone >/dev/null
