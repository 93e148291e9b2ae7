# hone train layout learns from layouts of whole programs, hone eval judges models of graphs, and
# what does not fit is refused.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 2 "-o names the file" train layout set
fails 3 "missing" train layout missing -o m
fails 2 "unknown" train layout set -o m --passing unknown

for model in mlp,size=tiny squeezenet,size=tiny; do
  "$HONE" dataset build "zoo:$model" --task layout --plans 24 --whole 0 --budget 10s -o set \
    >out 2>err
done
train() { "$HONE" train layout set --epochs 2 --threads 1 "$@"; }
train -o one.model >out 2>err
contains "^sage, 2 layers of 32, additive reduction, loss weighted, 1 hops: "
train -o two.model >out 2>err
cmp one.model two.model # the same again

train -o priced.model --skeleton >out 2>err
contains "^sage, 2 layers of 32, additive reduction, on prices, loss weighted, 1 hops: "
fails 3 "add nothing to prices" train layout set -o m --skeleton --compare --reduction columns

# A model of some programs, judged by the others.
cat >my.split <<'END'
train zoo:squeezenet,size=tiny
END
train -o some.model --split my.split >out 2>err
"$HONE" eval set --task layout --model some.model --threads 1 >out 2>err
contains "^zoo:mlp,size=tiny +random "
contains "^random +model +1 "
contains "^default +price +1 "
if grep -q squeezenet out; then exit 1; fi
contains "^area under the curve, slow against fast: model "
"$HONE" eval set --task layout --model some.model --json - | grep -q '"tau"'
fails 3 "in train and in test" train layout set -o m --split <(printf 'train a\ntest a\n')
fails 3 "has no program 'a'" train layout set -o m --split <(printf 'train a\n')
fails 3 "has learned from all programs" eval set --task layout --model one.model

# Splits of the programs, by files.
printf 'train zoo:squeezenet,size=tiny\ntest zoo:mlp,size=tiny\n' >a.split
printf 'validation zoo:mlp,size=tiny\ntest zoo:squeezenet,size=tiny\n' >b.split
evaluate() { "$HONE" eval "$1" --task layout --epochs 1 --threads 1 "${@:2}" >out 2>err; }
evaluate set --split a.split
contains "^zoo:mlp,size=tiny +random "
if grep -q squeezenet out; then exit 1; fi
evaluate set --split a.split,b.split
contains "^zoo:mlp,size=tiny +random "
contains "^zoo:squeezenet,size=tiny +random "
fails 3 "has no program 'a', which the split names" eval set --task layout \
  --split <(printf 'train zoo:mlp,size=tiny\ntest a\n')
fails 3 "no graph is in its part test (my.split)" eval set --task layout --split my.split
fails 3 "missing.split" eval set --task layout --split a.split,missing.split
fails 2 "it takes no --model" eval set --task layout --split a.split --model some.model
data=$ROOT/../shared/data/tpu
if [[ -e $data ]]; then
  fails 2 "some configurations are left out" eval "$data/module_tuning_data_layout.pb" \
    --split a.split
  fails 2 "each of these kernels is left out in turn" eval "$data/op_tuning_data.pb" --split a.split
  # Measurements of TPUs: each kernel in turn, beside any tile and the vendor's default. The values
  # of these two follow from the data: means over kernels of mean time / best, and of the normalizer
  # / best.
  "$HONE" eval "$data/op_tuning_data.pb" --members 2 --epochs 1 >out 2>err
  contains "^all +model +15 "
  contains "^all +random +15 +121.71"
  contains "^10 runs and more +default +8 +1.84"
else
  echo "there is no $data: its files are not judged"
fi

# Training by segments, and with a network that compares.
train -o segments.model --split my.split --segments 20 >out 2>err
contains ", 1 hops, segments of 20 nodes: "
"$HONE" eval set --task layout --model segments.model --threads 1 >out 2>err
contains "^area under the curve"
fails 3 "segments add up" train layout set -o m --segments 20 --reduction columns
"$HONE" eval set --task layout --reduction columns --compare --epochs 1 --splits 1 --threads 1 \
  >out 2>err
contains "^default +model +1 "

# The layouts that a set has, and splits of it.
"$HONE" dataset inspect set >out
contains "^zoo:squeezenet,size=tiny +random "
contains "^[0-9]+ assignments of layouts, 0 runs of whole programs$"
"$HONE" dataset inspect set --json - | grep -q '"configurable"'
"$HONE" dataset split set --validation 0 -o own.split >out 2>err
contains "^test +1 +2 +[0-9]+$"
"$HONE" dataset split set --check my.split >out
contains "^train +1 +2 +[0-9]+$"
says "4 files of layouts" dataset merge set -o both
"$HONE" dataset build -o both --task layout --plans 24 --whole 0 --renew --cost analytic >out 2>err
contains "^[0-9]+ assignments of layouts, 0 runs"
fails 3 "none.model" dataset build -o both --task layout \
  --cost none.model

# Exported by its own columns, and by the published ones, which name no target.
says "wrote 4 files" dataset export set -o npz
"$HONE" eval npz --task layout --model some.model --json - | cmp - \
  <("$HONE" eval set --task layout --model some.model --json -)
says "columns that are lost: " dataset export set -o tpu --schema tpu --split own.split
has_said "arrays that are lost: " dataset export
[[ -n $(find tpu/layout/hone/random/test -name '*-random.npz') ]]
train_tpu() { "$HONE" train layout tpu --epochs 1 --threads 1 "$@"; }
train_tpu -o tpu.model >out 2>err
fails 3 "one that nobody names" eval npz --task layout --model tpu.model
says "wrote 4 files" dataset export npz -o cut --schema tpu
"$HONE" eval cut --task layout --model tpu.model --json - >out 2>err || has_said "all programs" eval

# Files that are damaged or of another kind.
printf 'x' | dd of=two.model bs=1 seek=9000 conv=notrunc status=none
fails 3 "damaged" eval set --task layout --model two.model
fails 3 "not 'hone kernel model 4'" compile zoo:mlp,size=tiny --cost one.model
