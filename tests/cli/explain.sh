# hone explain tells per kernel what was chosen and what it costs; --diff, what another plan says.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db
hone() { "$HONE" explain "$@" --cache none --threads 1; }

hone zoo:mlp >out 2>err
contains '^[0-9]+ different kernels, threads 1, priced '
contains '^1\. .*dot_.* [0-9]+ steps?, [0-9.]+% of the price$'
contains '^  (gemm|nest|chain) +[a-z_]+ = '
contains '^  price +[0-9.]+ [mun]?s: arithmetic '
contains '^  roofs +arithmetic .*, memory '
contains '^  others +[a-z]+ [0-9]'
[[ $(wc -L <out) -le 100 ]]
hone zoo:mlp --top 1 >out 2>err
contains 'cheaper ones \(--top N shows more\)$'
[[ $(grep -cE '^[0-9]+\. ' out) == 1 ]]
hone zoo:mlp,size=tiny --json - >out 2>err
contains '"terms": '
contains '"others": '

# Layers go by the names of the file's nodes.
"$HONE" zoo export resnet18 --size tiny -o net.onnx 2>/dev/null
hone net.onnx --top 3 >out 2>err
contains '^1\. value[_0-9]*_node'

# A plan that decides otherwise than the planner, and what differs.
"$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 --emit plan >same.plan 2>err
sed -E '0,/^( *schedule 0x[0-9a-f]+ = ).*/s//\1{algorithm = nest, order = [0, 1]}/' same.plan \
  >other.plan
hone zoo:mlp,size=tiny other.plan >out 2>err
contains "^  planner's"
hone zoo:mlp,size=tiny default --diff other.plan >out 2>err
contains '^A: default, priced '
contains '^B: other.plan, priced '
contains '^kernel +in A +priced +measured +in B +priced +measured$'
contains '^\+ schedule 0x'
hone zoo:mlp,size=tiny same.plan --diff default >out 2>err
contains '^no kernel differs$'
contains '^the plans are the same$'

fails 2 "open sizes" zoo:mlp,size=tiny,symbolic-batch
fails 2 "--json" zoo:mlp,size=tiny --diff same.plan --json -
fails 3 "no plan of this model" zoo:mlp,size=tiny log
fails 3 "none.plan" zoo:mlp,size=tiny none.plan
fails 3 "the plan is for another graph" zoo:mlp same.plan
sed 's/%logits/%nothing/' same.plan >unfit.plan
fails 3 "unfit.plan:" zoo:mlp,size=tiny unfit.plan
fails 3 "unfit.plan:" zoo:mlp,size=tiny --diff unfit.plan
[[ ! -e log.db ]]

# Of what is no log.
echo "this is no log" >text.db
fails 3 "is no log" zoo:mlp,size=tiny log --log text.db

# The log's plan and times count where nobody says another plan.
log_with_plan best.db zoo:mlp,size=tiny other.plan
says "the log's plan" zoo:mlp,size=tiny --log best.db
contains "^  planner's"
contains "^  measured"
hone zoo:mlp,size=tiny --log best.db --no-log >out 2>err
! grep -q "the log's plan" err
! grep -q "^  planner's" out
hone zoo:mlp,size=tiny default --diff log --log best.db >out 2>err
contains '^B: log, priced '
contains '^\+ schedule 0x'

# A damaged log costs that, and nothing else; where its plan is asked for it is refused.
damage best.db
says "the log is not used: the log 'best.db' is damaged" zoo:mlp,size=tiny --log best.db
! grep -q "^  planner's" out
fails 3 "is damaged" zoo:mlp,size=tiny log --log best.db
grep -qF "hone log verify --repair" err
fails 3 "is damaged" zoo:mlp,size=tiny default --diff log --log best.db
