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

# Of some programs, judged by the others.
cat >my.split <<'END'
train zoo:squeezenet,size=tiny
END
train -o some.model --split my.split >out 2>err
"$HONE" eval set --task layout --model some.model --threads 1 >out 2>err
contains "^zoo:mlp,size=tiny "
if grep -q squeezenet out; then exit 1; fi
contains "^area under the curve, slow against fast: "
"$HONE" eval set --task layout --model some.model --json - | grep -q '"tau"'
fails 3 "in train and in test" train layout set -o m --split <(printf 'train a\ntest a\n')
fails 3 "has no program 'a'" train layout set -o m --split <(printf 'train a\n')
fails 3 "has learned from all programs" eval set --task layout --model one.model

# What is damaged or of another kind.
printf 'x' | dd of=two.model bs=1 seek=9000 conv=notrunc status=none
fails 3 "damaged" eval set --task layout --model two.model
fails 3 "not 'hone kernel model 3'" compile zoo:mlp,size=tiny --cost one.model
