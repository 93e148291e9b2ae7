# hone compare runs a model under two plans in turns, and says what is wrong with a plan.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db
hone() { "$HONE" compare "$1" "$2" "$3" --cache none --threads 1 --seconds 0.1 "${@:4}"; }

"$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 --emit plan >same.plan 2>err
"$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 \
  --without chains,fuse_epilogues --emit plan >other.plan 2>err

# A line for each plan, then the verdict.
hone zoo:mlp,size=tiny default other.plan >out 2>err
grep -qE '^default +min .*, median .*, of [0-9]+ runs$' out
grep -qE '^other.plan +min ' out
grep -qE '^other.plan is [0-9.]+x \([0-9.]+ to [0-9.]+\) as fast as default: (surely|neither)' out
[[ $(wc -l <out) == 3 && $(wc -L <out) -le 100 ]]
hone zoo:mlp,size=tiny default same.plan >out 2>err
grep -q "both plans" err
hone zoo:mlp,size=tiny default other.plan --json - >out 2>err
grep -q '"gain": ' out && grep -q '"plan": "other.plan"' out && grep -q '"verdict": ' out

# Open sizes have to be chosen, by numbers or arrays.
fails 2 "depends on the open size N" zoo:mlp,size=tiny,symbolic-batch default default
hone zoo:mlp,size=tiny,symbolic-batch default default --dim N=3 >out 2>err

# Plans that cannot be compared.
fails 3 "no plan of this model for 1 threads" zoo:mlp,size=tiny default log
fails 3 "none.plan" zoo:mlp,size=tiny none.plan default
sed 's/threads = 1/threads = soon/' same.plan >bad.plan
line=$(grep -n "soon" bad.plan | cut -d: -f1)
fails 3 "bad.plan:$line:" zoo:mlp,size=tiny default bad.plan
sed 's/%logits/%nothing/' same.plan >unfit.plan
fails 3 "unfit.plan:" zoo:mlp,size=tiny default unfit.plan
fails 3 "same.plan" zoo:mlp same.plan default
[[ ! -e log.db ]]

# The log's plan, and a log that is damaged.
log_with_plan best.db zoo:mlp,size=tiny other.plan
hone zoo:mlp,size=tiny default log --log best.db >out 2>err
contains '^log is [0-9.]+x '
damage best.db
fails 3 "is damaged" zoo:mlp,size=tiny default log --log best.db
grep -qF "hone log verify --repair" err
hone zoo:mlp,size=tiny default other.plan --log best.db >out 2>err
