# hone train cost makes a model of a data set, commands that plan use it, and damage is refused.
source "$ROOT/tests/cli/expect.bash"
source "$ROOT/tests/share.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 3 "missing" train cost missing
fails 3 "missing" eval missing
fails 2 "outside 2..32" train cost missing --members 1
fails 3 "there is no model of the target" compile zoo:mlp,size=tiny --cost learned
fails 3 "missing.model" compile zoo:mlp,size=tiny --cost missing.model
fails 3 "there is no log" compile zoo:mlp,size=tiny --cost measured
"$HONE" help train >out
contains "hone train cost"

build_set zoo:squeezenet zoo:mobilenet_v2 zoo:resnet18 --kernels 12 --schedules 10 --threads 1 \
  -o set
train() { "$HONE" train cost set --members 2 --epochs 3 "$@"; }
train -o my.model >out 2>err
contains "2 networks for .* on 1 thread, by"
grep -q "wrote my.model" err
[[ ! -e prices && ! -e my.model.training ]]
train -o other.model >out 2>err
cmp my.model other.model # the same again
"$HONE" place zoo:mlp,size=tiny --system ring:2 --seconds 0 --cost my.model >out 2>err
grep -q "bound .* gap" err
"$HONE" eval set --model my.model >out 2>err && exit 1
grep -q "has learned from all programs" err
"$HONE" eval set --splits 1 --members 2 --epochs 1 --json eval.json >out 2>err
contains "^all .*analytic"
contains "of the kernels are known; (their bound .* holds for|none has a bound)"
grep -q '"learned"' eval.json

# With measuring before: a set goes on, or one in the user's folder.
fails 2 "or --budget TIME measures first" train cost
fails 2 "--isa goes with --budget" train cost set --isa avx2
fails 2 "not a time" train cost set --budget soon
mkdir papers && touch papers/a.txt
fails 3 "it has 'a.txt' (papers)" train cost papers --budget 1s
[[ $(ls papers) == a.txt ]]
if in_share 0 2; then
  cp -r set more
  schedules() { "$HONE" dataset inspect "$1" 2>/dev/null | awk '$1 == "all" { print $3 }'; }
  "$HONE" train cost more --budget 10s --members 2 --epochs 1 -o more.model >out 2>err
  grep -q "schedules of .* kernels of 3 programs" err
  grep -q "begin with those of the model that comes with hone" err
  (($(schedules more) > $(schedules set))) || grep -qE "were refused|too noisy" err # a busy machine
  "$HONE" train cost --budget 0.001 >out 2>err && exit 1 # nothing was measured
  [[ -d $(echo "$HONE_PRICES"/*.set) ]]
  cp -r set/. "$HONE_PRICES"/*.set/
  "$HONE" train cost --budget 1s --members 2 --epochs 1 >out 2>err
  grep -q "prices/.*model; commands that plan for this target use it" err
  rm -r "$HONE_PRICES"
fi

# Splits of the programs, by files.
if in_share 0 3; then
  printf 'train zoo:squeezenet\ntrain zoo:mobilenet_v2\ntest zoo:resnet18\n' >a.split
  printf 'train zoo:resnet18\ntrain zoo:mobilenet_v2\ntest zoo:squeezenet\n' >b.split
  "$HONE" eval set --split a.split,b.split --members 2 --epochs 1 >out 2>err
  grep -q "split 2 of 2" err
  contains "^all .*analytic"
  train -o part.model --split a.split >out 2>err
  contains "kernels of 2 programs"
  "$HONE" eval set --model part.model >out 2>err # by resnet18
  printf 'train zoo:other\n' >unknown.split
  fails 3 "which the split has in train (unknown.split)" train cost set --split unknown.split
  printf 'test zoo:resnet18\n' >none.split
  fails 3 "no kernel is in its part train (none.split)" train cost set -o x.model --split none.split
  printf 'train zoo:resnet18\n' >untested.split
  fails 3 "no kernel is in its part test (untested.split)" eval set --split untested.split
  fails 2 "it takes no --model" eval set --split a.split --model part.model
fi

# Absolute times.
if in_share 1 3; then
  "$HONE" eval set --task fusion --splits 1 --members 2 --epochs 1 --json times.json >out 2>err
  contains "^of plan +[0-9]+ "
  contains "^all +[0-9]+ "
  grep -q '"median"' times.json
  fails 2 "takes no --model" eval set --task fusion --model my.model
fi

# From the networks of another model: of a file, or of one that comes with hone, of another target.
if in_share 2 3; then
  train -o again.model --from my.model >out 2>err
  contains "2 networks for"
  never cmp -s my.model again.model
  train -o none.model --from none >out 2>err
  cmp my.model none.model
  train -o shipped.model --from shipped >out 2>err
  contains "2 networks for"
  fails 3 "missing.model" train cost set -o x.model --from missing.model
  fails 3 "a.split" train cost set -o x.model --from a.split
fi

# Several sets have to be of several processors.
fails 2 "-o names the file of a model of several sets" train cost set set
fails 2 "--from is for one set" train cost set set -o x.model --from none
fails 3 "of one processor" train cost set set -o x.model --members 2 --epochs 1
fails 2 "name data sets, or models with --plans" eval price
fails 2 "--on is of trials on data sets" eval price --plans zoo:mlp,size=tiny --on set
fails 3 "missing" eval price missing
fails 2 "--model is of plans" eval price set --model my.model
fails 3 "of one processor" eval price set --parts 2 --members 2 --epochs 1
if ! command -v xz >/dev/null; then
  echo "there is no xz: the sets of other processors are not unpacked"
elif in_share 1 3; then
  unpack_some zen3
  unpack_some xeon
  both() { "$HONE" "$@" zen3.set xeon.set --members 2 --epochs 1; }
  both train cost -o both.model >out 2>err
  contains "4 networks for .any processor. on 1 thread"
  grep -q "zen3.set: AMD EPYC, 32.0 KiB, 512.0 KiB, rates that its kernels imply" err
  grep -q "wrote both.model" err
  [[ ! -e both.model.training ]]
  # It is for this machine, which it has not seen, and for one that it has.
  "$HONE" compile zoo:mlp,size=tiny --threads 1 --no-log --emit plan --cost both.model >out 2>err
  grep -q "^# learned: both.model$" out
  both eval price --parts 2 --json left.json >out 2>err
  contains "^families of programs left out:$"
  contains "^a processor left out: no trial"
  contains "^all .*analytic"
  grep -q '"family"' left.json
  "$HONE" eval price --plans zoo:mlp,size=tiny --seconds 1 --tuned 0 --model both.model >out 2>err
  contains "^zoo:mlp,size=tiny +[0-9.]+ +"
  fails 3 "'AMD EPYC, 32.0 KiB, 512.0 KiB' is one of the processors that models learn from" \
    eval price zen3.set xeon.set --on zen3.set
fi
if in_share 0 3; then
  "$HONE" eval price --plans zoo:mlp,size=tiny --seconds 1 --tuned 0 >out 2>err
  contains "^zoo:mlp,size=tiny +(-|[0-9.]+) +- +-"
  contains "^geometric mean"
  "$HONE" eval price --plans zoo:mlp,size=tiny --seconds 1 --tuned 0 --json - >out 2>err
  contains '"model": "zoo:mlp,size=tiny"'
fi

# It is used where it is found, and by name.
plan() { "$HONE" compile zoo:mlp,size=tiny --threads 1 --no-log --emit plan "$@"; }
plan >analytic 2>err
never grep -q "learned" err
plan --cost my.model >named 2>err
grep -q "^# learned: my.model$" named
train >out 2>err
file=$(sed -n 's/^wrote \(.*\.model\); .*/\1/p' err)
[[ $file == prices/* || $file == "$PWD"/prices/* ]]
plan >found 2>err
grep -q "prices learned on this target, $file (--cost analytic: without)" err
cmp <(grep -v "^# learned" named) <(grep -v "^# learned" found)
grep -q "^# learned: $file" found
plan --cost analytic >out 2>err
cmp analytic out
never grep -q "learned" err
"$HONE" explain zoo:mlp,size=tiny --threads 1 --no-log >out 2>err
grep -q "prices learned" err

# The data that prices are based on. The set has no recurrent net.
"$HONE" explain zoo:resnet18 --threads 1 --no-log --why >out 2>err
contains "^learned prices, .*model$"
contains "kernel +price +analytic +networks"
contains "^ *1\. .* x [0-9.]+ +[0-9]+ % .*learned|^ *1\. .*(analytic|the dearer)"
[[ $(wc -L <out) -le 120 ]]
"$HONE" explain zoo:lstm,size=tiny --threads 1 --no-log --why >out 2>err
contains "^why networks have no say:"
contains "^1\. the (model has not seen|kernel is .* from the nearest)"
"$HONE" explain zoo:lstm,size=tiny --threads 1 --no-log --why --json - >out 2>err
contains '"knows": false'
"$HONE" explain zoo:lstm,size=tiny --threads 1 --no-log >out 2>err
grep -qE "[0-9]+ of [0-9]+ different kernels have the analytic price alone" err
for form in "" "-o lstm.honec"; do # shellcheck disable=SC2086
  "$HONE" compile zoo:lstm,size=tiny --threads 1 --no-log $form >out 2>err
  grep -qE "[0-9]+ of [0-9]+ different kernels have the analytic price alone" err
done
# Nor has it times.
"$HONE" compile zoo:lstm,size=tiny --threads 1 --log set/log.db --cost measured >out 2>err
grep -qE "[0-9]+ of [0-9]+ different kernels have the analytic price alone" err
"$HONE" explain zoo:lstm,size=tiny --threads 1 --no-log --cost analytic --why >out 2>err
contains "^no price is learned$"
fails 2 "does not go with --diff" explain zoo:mlp,size=tiny --why --diff default

# One that is damaged or of another target costs speed alone, unless it was asked for.
cp "$file" good
printf 'x' | dd of="$file" bs=1 seek=20000 conv=notrunc status=none
plan >out 2>err
grep -q "learned prices are not used: " err
cmp analytic out
fails 3 "damaged" compile zoo:mlp,size=tiny --cost "$file"
fails 4 "is of the target" compile zoo:mlp,size=tiny --isa x86-64-v2 --cost good
head -c 100 good >"$file"
plan >out 2>err
grep -q "learned prices are not used: " err
cmp analytic out
