# hone dataset build --task plans runs plans in turns, models of whole plans learn from them, and
# what is damaged is refused by name.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 3 "missing" train plans missing
fails 3 "missing" eval plans missing
fails 2 "outside 2..64" train plans missing --members 1

build() {
  "$HONE" dataset build zoo:mixer,size=tiny zoo:squeezenet,size=tiny zoo:gpt2,size=tiny \
    --task plans --plans 2 --each 0.2s --cost analytic -o set >out 2>err
}
build
contains "^[0-9]+ plans, [1-9][0-9]* runs of whole programs"
[[ -f set/plans/zoo_squeezenet_size=tiny.npz ]]
cp -r set/plans before
build
contains "; 3 of 3 wanted are done" # nothing is measured again
for file in before/*; do cmp "$file" "set/plans/${file##*/}"; done

train() { "$HONE" train plans set --members 2 --epochs 4 "$@"; }
train -o my.plans >out 2>err
contains "^all "
contains "^(no choice gained|a plan is taken if)"
grep -q "wrote my.plans" err
[[ ! -e prices && ! -e my.plans.training ]]
train -o again.plans --threads 2 >out 2>err
cmp my.plans again.plans # the same bits on any number of threads
train >out 2>err
[[ -f $(echo prices/*.plans) ]]
"$HONE" eval plans set --members 2 --epochs 1 --json - >out 2>err
grep -q '"ordered_by_price"' out

# A model of plans that cannot count costs nothing but a line.
head -c 2000 my.plans >"$(echo prices/*.plans)"
"$HONE" compile zoo:mlp,size=tiny --no-log --stop-after plan >out 2>err
if "$HONE" compile zoo:mlp,size=tiny --cost learned --stop-after plan >out 2>err; then
  grep -q "the model of plans is not used: .*\.plans" err
fi
head -c 3000 before/zoo_gpt2_size=tiny.npz >set/plans/zoo_gpt2_size=tiny.npz
fails 3 "zoo_gpt2_size=tiny.npz" train plans set
rm -r set/plans
fails 3 "'set' has no plans that ran in turns" train plans set
