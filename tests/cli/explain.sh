# hone explain tells per kernel what was chosen and what it costs; --diff, what another plan says.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db
hone() { "$HONE" explain "$@" --cache none --threads 1; }
# Kernels of a chain have no terms of their own.
apart() { hone "$@" --without chains; }

apart zoo:mlp >out 2>err
contains '^[0-9]+ different kernels, threads 1, priced '
contains '^1\. .*dot_.* [0-9]+ steps?, [0-9.]+% of the price$'
contains '^  (gemm|nest|chain) +[a-z_]+ = '
contains '^  price +[0-9.]+ [mun]?s: arithmetic '
contains '^  roofs +arithmetic .*, memory '
contains '^  others +[a-z]+ [0-9]'
[[ $(wc -L <out) -le 100 ]]
apart zoo:mlp --top 1 >out 2>err
contains 'cheaper ones \(--top N shows more\)$'
[[ $(grep -cE '^[0-9]+\. ' out) == 1 ]]
apart zoo:mlp,size=tiny --json - >out 2>err
contains '"terms": '
contains '"others": '

# Layers go by the names of the file's nodes.
"$HONE" zoo export resnet18 --size tiny -o net.onnx 2>/dev/null
hone net.onnx --top 3 >out 2>err
contains '^1\. value[_0-9]*_node'

# Two products, neither of which reads the other: two kernels by any price.
cat >two.hone <<'END'
graph @two(%x: f32[8, 64], %w: f32[64, 32], %v: f32[64, 16]) -> (f32[8, 32], f32[8, 16]) {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %z = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y, %z
}
END

# A plan that decides otherwise than the planner, and what differs.
"$HONE" compile two.hone --cache none --threads 1 --emit plan >same.plan 2>err
sed -E '0,/^( *schedule 0x[0-9a-f]+ = ).*/s//\1{algorithm = nest, order = [0, 1]}/' same.plan \
  >other.plan
hone two.hone other.plan >out 2>err
contains "^  planner's"
hone two.hone default --diff other.plan >out 2>err
contains '^A: default, priced '
contains '^B: other.plan, priced '
contains '^kernel +in A +priced +measured +in B +priced +measured$'
contains '^\+ schedule 0x'
hone two.hone same.plan --diff default >out 2>err
contains '^no kernel differs$'
contains '^the plans are the same$'

fails 2 "open sizes" zoo:mlp,size=tiny,symbolic-batch
fails 2 "--json" two.hone --diff same.plan --json -
fails 3 "no plan of this model" two.hone log
fails 3 "none.plan" two.hone none.plan
fails 3 "the plan is for another graph" zoo:mlp same.plan
sed 's/%y/%nothing/' same.plan >unfit.plan
fails 3 "unfit.plan:" two.hone unfit.plan
fails 3 "unfit.plan:" two.hone --diff unfit.plan
[[ ! -e log.db ]]

# A file that is not a log.
echo "this is no log" >text.db
fails 3 "'text.db'" two.hone log --log text.db

# The log's plan and times count where nobody says another plan.
log_with_plan best.db two.hone other.plan
says "the log's plan" two.hone --log best.db
contains "^  planner's"
contains "^  measured"
hone two.hone --log best.db --no-log >out 2>err
never grep -q "the log's plan" err
never grep -q "^  planner's" out
hone two.hone default --diff log --log best.db >out 2>err
contains '^B: log, priced '
contains '^\+ schedule 0x'

# A damaged log costs that, and nothing else; where its plan is asked for it is refused.
damage best.db
says "the log is not used: the log 'best.db' is damaged" two.hone --log best.db
never grep -q "^  planner's" out
fails 3 "is damaged" two.hone log --log best.db
grep -qF "hone log verify --repair" err
fails 3 "is damaged" two.hone default --diff log --log best.db

# The model on each device of a system.
fails 2 "needs --system" two.hone --trace trace.json
for other in "--diff default" --why "--json -"; do
  fails 2 "does not go with ${other%% *}" two.hone --system ring:2 $other
done
fails 2 "does not go with --isa" two.hone --system ring:2 --isa avx2
fails 2 "'circle'" two.hone --system circle:2
fails 3 "missing.system" two.hone --system missing.system
hone two.hone default --system ring:3 --top 2 >out 2>err
contains '^two on each of the 3 devices of ring:3, by price '
contains '^computing +[0-9.]+ [mun]?s +100.0%$'
contains '^0-2 ' # they do the same
never grep -q 'more sorts of devices' out
cat >sum.hone <<'END'
graph @sum(%x: f32[8, 64], %w: f32[64, 32], %v: f32[32, 16]) -> (f32[8, 16]) {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %s = all_reduce %y {kind = sum, group_size = 4}
  %z = dot %s, %v {lhs_contract = [1], rhs_contract = [0]}
  return %z
}
END
hone sum.hone default --system tree:2x4 --trace trace.json >out 2>err
contains '^all_reduce s +2 of 4 +1.0 KiB '
contains '^link port '
contains '^sums and copies '
grep -q '"all_reduce s"' trace.json
mv out first
hone sum.hone default --system tree:2x4 >out 2>err
cmp out first
# Groups of four do the same, however many there are.
contains '^0[0-9, .-]* +[0-9.]+ [mun]?s .* all_reduce s '
contains '^link port .* alike '
hone sum.hone default --system tree:1024x4 >out 2>err
contains '^sum on each of the 4096 devices of tree:1024x4, by price '
contains '^all_reduce s +1024 of 4 '
fails 3 "groups of 4" sum.hone --system ring:6

# Half of each shard goes either way around a ring of slow links, so the steps of a product pay.
cat >gathered.hone <<'END'
graph @gathered(%x: f32[8, 64], %w: f32[64, 32]) -> f32[32, 32] {
  %all = all_gather %x {axis = 0, group_size = 4}
  %y = dot %all, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
END
"$HONE" system show ring:4 | sed '/link ring/s/12 GB/0.000001 GB/' >slow.system
hone gathered.hone --system slow.system >out 2>err
contains '^y +[0-9.]+ s +[0-9.]+ s +overlap_both_'
contains '^permute y.permute'
compiled() { "$HONE" compile gathered.hone --cache none --threads 1 "$@"; }
compiled --system slow.system --emit plan >steps.plan 2>err
grep -q 'rewrite 1 = @overlap_both_.*(%y)' steps.plan
grep -q 'y is in steps by overlap_both_' err
compiled --plan steps.plan --emit program | grep -q 'start permute'
hone gathered.hone steps.plan --system slow.system >out 2>err
contains '^permute y.permute'
for other in "--plan steps.plan" "--isa avx2" "-o x.honec"; do
  "$HONE" compile gathered.hone --system ring:4 $other 2>err && exit 1
  grep -q -- "${other%% *}" err
done

# Devices divide the batch, and exchange their sums.
cat >mean.hone <<'END'
graph @mean(%x: f32[5, 64]) -> f32[5, 64] {
  %s = reduce %x {kind = sum, axes = [0]}
  %b = broadcast %s {dims = [5, 64], map = [1]}
  %y = sub %x, %b
  return %y
}
END
says "each of 2 devices with 3 of 5 rows of the batch, the most that one has" mean.hone --devices 2
contains '^mean on each of the 2 devices of local:2, by price '
contains '^all_reduce s .*256 B '
contains '^link '
says "with 1 of 5 rows" mean.hone --devices 5 --system ring:5 --trace parts.json
contains '^mean on each of the 5 devices of ring:5, by price '
grep -q '"all_reduce s"' parts.json
says "with 32 of 64 rows" mean.hone --devices 2 --batch x:1
never grep -q '^all_reduce' out
hone sum.hone --devices 4 >out 2>err
contains '^sum on each of the 4 devices of local:4, by price '
fails 2 "'ring:3' has 3 devices" mean.hone --devices 2 --system ring:3
fails 2 "5 of them have some" mean.hone --devices 6
fails 2 "--batch needs --devices" mean.hone --batch x
fails 2 "a plan is of one device" mean.hone mean.plan --devices 2
fails 2 "does not go with --isa" mean.hone --devices 2 --isa avx2

# Devices divide values: who holds what, what moves and for whom, and what else it might cost.
hone mean.hone --mesh r=2 --shard 'x=[r, -]' >out 2>err
contains '^%x +f32\[5, 64\] +\[r, -\] +768 B'
contains '^all_reduce +%s '
contains '^this one +[0-9.]+ .s +[0-9.]+ '
contains '^nothing divided +[0-9.]+ .s +[0-9.]+ '
contains '^the batch alone +[0-9.]+ .s +[0-9.]+ '
contains '^by price \(--shard auto\) +[0-9.]+ .s +[0-9.]+ '
contains '^mean on each of the 2 devices of local:2, by price '
hone mean.hone --devices 2 --shard auto >out 2>err
contains '^this one '
never grep -q '^by price (--shard' out
fails 2 "--shard needs devices" mean.hone --shard auto
fails 2 "3 devices are given" mean.hone --devices 3 --mesh r=2
fails 2 "does not go with --shard" mean.hone --mesh r=2 --batch x
fails 2 "--mesh tells when" mean.hone --mesh r=2 --why
