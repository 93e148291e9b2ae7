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

# Of some programs, judged by the others.
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

# By segments, and with a network that compares.
train -o segments.model --split my.split --segments 20 >out 2>err
contains ", 1 hops, segments of 20 nodes: "
"$HONE" eval set --task layout --model segments.model --threads 1 >out 2>err
contains "^area under the curve"
fails 3 "segments add up" train layout set -o m --segments 20 --reduction columns
"$HONE" eval set --task layout --reduction columns --compare --epochs 1 --splits 1 --threads 1 \
  >out 2>err
contains "^default +model +1 "

# What a set has of layouts, and splits of it.
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

# What is damaged or of another kind.
printf 'x' | dd of=two.model bs=1 seek=9000 conv=notrunc status=none
fails 3 "damaged" eval set --task layout --model two.model
fails 3 "not 'hone kernel model 3'" compile zoo:mlp,size=tiny --cost one.model
