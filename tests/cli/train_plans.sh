# hone dataset build --task plans runs plans in turns, models of whole plans learn from them, and
# what is damaged is refused by name.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 3 "missing" train plans missing
fails 3 "missing" eval plans missing
fails 2 "outside 2..64" train plans missing --members 1

build_plans() {
  "$HONE" dataset build zoo:mixer,size=tiny zoo:squeezenet,size=tiny zoo:gpt2,size=tiny \
    --task plans --plans 2 --each 0.2s --cost analytic -o set >out 2>err
}
build_plans
contains "^[0-9]+ plans, [1-9][0-9]* runs of whole programs"
[[ -f set/plans/zoo_squeezenet_size=tiny.npz ]]
cp -r set/plans before
build_plans
contains "; 3 of 3 wanted are done" # nothing is measured again
for file in before/*; do cmp "$file" "set/plans/${file##*/}"; done

train() { "$HONE" train plans set --members 2 --epochs 4 "$@"; }
train -o my.plans >out 2>err
contains "^all "
contains "^(no choice gained|a plan is taken if)"
grep -q "wrote my.plans" err
[[ ! -e prices && ! -e my.plans.training ]]
train -o again.plans >out 2>err
cmp my.plans again.plans # the same bits
fails 2 "--threads" train plans set --threads 2 # steps run on one
train >out 2>err
[[ -f $(echo prices/*.plans) ]]
"$HONE" eval plans set --members 2 --epochs 1 --json - >out 2>err
grep -q '"ordered_by_price"' out

# It is of the analytic prices. Beside a learned one it does not count, and costs a line.
plans=$(echo "$PWD"/prices/*.plans)
build_set zoo:squeezenet zoo:mobilenet_v2 zoo:resnet18 --kernels 12 --schedules 10 --threads 1 \
  -o kernels
"$HONE" train cost kernels --members 2 --epochs 1 >out 2>err
compile() { "$HONE" compile zoo:mlp,size=tiny --no-log --stop-after plan >out 2>err; }
compile
grep "the model of plans is not used: " err | grep -q "other prices"
"$HONE" doctor >out 2>err || true
contains "plans +their model is not used"
head -c 2000 my.plans >"$plans"
compile
grep "the model of plans is not used: " err | grep -q "\.plans"
head -c 3000 before/zoo_gpt2_size=tiny.npz >set/plans/zoo_gpt2_size=tiny.npz
fails 3 "zoo_gpt2_size=tiny.npz" train plans set
rm -r set/plans
fails 3 "'set' has no plans that ran in turns" train plans set
