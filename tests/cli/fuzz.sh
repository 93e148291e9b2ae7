# Random cases pass, and every decision has rows in the table.
source "$ROOT/tests/cli/expect.bash"
"$HONE" fuzz --seed 100 --count 60 --save failed >out 2>err || { cat out err; exit 1; }
for decision in threads copy fuse view in_place layout region order offset schedule.algorithm \
  schedule.order schedule.threads schedule.lanes schedule.unroll schedule.row schedule.block \
  schedule.pack_lhs schedule.pack_rhs; do
  grep -q "^$decision " out || { echo "no row for $decision"; exit 1; }
done
grep -Eq "^60 cases: [0-9]+ passed, .* 0 wrong, 0 refused, 0 fault, 0 crashed$" out
[[ ! -e failed ]]
code=0
"$HONE" fuzz --count 2 --at-least 1000 >out 2>err || code=$?
[[ $code == 1 ]] && grep -q "fewer than 1000 times" err

# A case of one's own; one that does not fail stays as it is.
write_case good.case
"$HONE" reduce good.case >out 2>err
[[ ! -s out ]] && grep -q "the case does not fail: passed" err

# One that is refused in the same way is made smaller.
sed -e 's/^---- inputs/---- plan\nplan @main {\n  threads = 100000\n}\n---- inputs/' \
  -e 's/return %y/%z = exp %y : f32[2]\n  return %y, %z/' good.case >bad.case
"$HONE" reduce bad.case -o small.case 2>err
grep -q "threads" err
grep -q "threads = 100000" small.case
[[ $(grep -c "exp" small.case) == 1 ]]

# A model becomes a case: one that is right stays as it is, one that fails is reduced.
"$HONE" reduce zoo:mlp,size=tiny,symbolic-batch --dim N=2 >out 2>err
[[ ! -s out ]] && grep -q "the case does not fail: passed" err
"$HONE" compile zoo:mlp,size=tiny --emit plan -o good.plan
"$HONE" reduce zoo:mlp,size=tiny --plan good.plan >out 2>err
[[ ! -s out ]] && grep -q "the case does not fail: passed" err
printf 'plan @mlp {\n  threads = 1\n}\n' >part.plan
"$HONE" reduce zoo:mlp,size=tiny --plan part.plan --isa x86-64-v2 --time-limit 0.001 -o small.case \
  2>err
grep -q "^case x86-64-v2 accurate" small.case
[[ $(wc -l <small.case) -lt 25 ]] || { cat small.case; exit 1; }

# A person's plan that does not fit is not a case.
printf 'plan @mlp {\n  threads = 100000\n}\n' >bad.plan
for size in "" ",batch=3"; do
  code=0
  plan=$([[ $size ]] && echo good.plan || echo bad.plan)
  "$HONE" reduce "zoo:mlp,size=tiny$size" --plan "$plan" >out 2>err || code=$?
  [[ $code == 3 && ! -s out ]] && grep -q "$plan" err || { cat err; exit 1; }
done
code=0
"$HONE" reduce bad.case --plan bad.plan >out 2>err || code=$?
[[ $code == 2 ]] && grep -q -- "--plan is for models" err

code=0
echo "graph" >no.case
"$HONE" reduce no.case >out 2>err || code=$?
[[ $code == 3 ]] && grep -q "a case begins with 'case ISA JUDGE'" err
