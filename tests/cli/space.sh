# hone space counts what is open in a plan: per kernel and per kind of edit, as text and as data.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" space --cache none --without chains "$@" 2>err; }

# Equal kernels count once. Nobody counts the schedules of a chain.
hone zoo:mlp --isa avx2 --threads 2 >out
contains '^4 steps, 3 different kernels'
contains '^@k1  dot_add_broadcast_max, 2 times$'
contains '^[* ] gemm +[0-9e]+  order 2, threads 3, lanes '
contains '^[* ] chain +uncounted  keep 15, .*stages uncounted$'
contains '^join +3 +3  join @k0 @k1, join @k1 @k2'
contains '^form +0$'
[[ $(wc -L <out) -le 100 ]]

# Around a plan that says something else.
cat >alone.plan <<'END'
plan @mlp { fuse @first = {%logits.dot} }
END
hone zoo:mlp,size=tiny --threads 1 >planned
hone zoo:mlp,size=tiny --threads 1 --plan alone.plan >out
contains '^@first  dot$'
contains '^threads +[01]'
cmp -s planned out && exit 1

# As data: the same counts, and null for what nobody counts.
hone zoo:mlp,size=tiny --threads 1 --json >out
contains '"algorithm": "gemm"'
contains '"stages": null'
contains '"edit": "join"'
[[ $(grep -c '"label"' out) == $(sed -nE 's/^.* ([0-9]+) different kernels.*/\1/p' planned) ]]

# Open sizes, several segments.
hone zoo:mlp,size=tiny,symbolic-batch >out
contains 'different kernels'

fails 2 "--threads" zoo:mlp --threads 0
sed 's/logits.dot/nothing/' alone.plan >bad.plan
fails 3 "bad.plan" zoo:mlp,size=tiny --plan bad.plan
fails 3 "nothing.hone" nothing.hone
"$HONE" compile zoo:mlp,size=tiny --cache none --no-log --threads 1 --emit plan >tiny.plan 2>err
fails 3 "the plan is for another graph" zoo:mlp --plan tiny.plan
