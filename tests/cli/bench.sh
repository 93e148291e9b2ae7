# hone bench says what runs take, of what; with --profile, which layers take it.
bench() { "$HONE" bench "$@" --cache none; }
bench zoo:mlp,size=tiny --seconds 0.01 --threads 1 >plain 2>err
sed -n 1p plain | grep -Eq "^threads 1, target .* \(.*\), x f32\[2, 16\]$"
sed -n 2p plain | grep -Eq "^min .*, median .*, p90 .*, p99 .*, of [0-9]+ runs$"
sed -n 3p plain | grep -Eq "^memory .* at most$"
[[ $(wc -l <plain) == 3 ]]
grep -q "compiled and run once in" err
bench zoo:mlp,size=tiny --runs 7 --warmup 0 >plain 2>/dev/null
grep -q "of 7 runs$" plain
code=0
bench zoo:mlp,size=tiny --runs 7 --seconds 1 2>err || code=$?
[[ $code == 2 ]] && grep -q "both say how long" err

# Figures of too few runs are called so.
bench zoo:mlp,size=tiny --runs 3 >plain 2>err
grep -q "the figures mean little: .*; the machine's load is" err

bench zoo:mlp,size=tiny --seconds 0.01 --threads 1 --profile --json profile.json >profile 2>err
grep -Eq "^layer +step +writes +algorithm +time +share +priced +of peak$" profile
grep -Eq "^all +[0-9.]+ [a-z]+$" profile
[[ $(awk 'length > 100' profile) == "" ]]
# Its steps and keys are those of the plan.
"$HONE" compile zoo:mlp,size=tiny --threads 1 --cache none --emit plan >plan
grep -Eo '"0x[0-9a-f]{16}"' profile.json | tr -d '"' >keys
while read -r key; do grep -q "schedule $key = " plan; done <keys
[[ -s keys ]]
grep -Eq '"step": "k0"' profile.json && grep -q "fuse @k0 = " plan
grep -q '"warmup": 3' profile.json
bench zoo:mlp,size=tiny --seconds 0.01 --json - >only.json 2>/dev/null
[[ $(head -c 1 only.json) == "{" ]] && grep -q '"p99": ' only.json

# Layers go by the names of the file's nodes.
"$HONE" zoo export resnet18 --size tiny -o net.onnx 2>/dev/null
bench net.onnx --seconds 0.01 --threads 1 --profile >profile 2>/dev/null
grep -Eq "^value[_0-9]*_node .*%$" profile

# Open sizes are part of what is measured.
code=0
bench zoo:mlp,size=tiny,symbolic-batch >out 2>err || code=$?
[[ $code == 2 && ! -s out ]] && grep -q "depends on the open size N" err
grep -q -e "--dim N=1" err
bench zoo:mlp,size=tiny,symbolic-batch --dim N=3 --seconds 0.01 >out 2>/dev/null
grep -q "f32\[3, 16\], N=3$" out
bench zoo:mlp,size=tiny,symbolic-batch --input x=5x16xf32=1 --seconds 0.01 >out 2>/dev/null
grep -q "N=5$" out

# Two plans in turns.
sed 's/threads = .*/threads = 1/' plan >one.plan
bench zoo:mlp,size=tiny --vs one.plan --threads 1 --seconds 0.1 --json vs.json >out 2>/dev/null
grep -Eq "^one.plan: min .* runs$" out
grep -Eq "^one.plan takes [0-9.e-]+ times as long \([0-9.e-]+ to [0-9.e-]+\)$" out
grep -q '"ratio_interval": \[' vs.json
code=0
bench zoo:mlp,size=tiny --vs none.plan 2>err || code=$?
[[ $code == 3 ]] && grep -q "none.plan" err
code=0
bench zoo:gpt2_decode,size=tiny --vs one.plan --donate 2>err || code=$?
[[ $code == 2 ]] && grep -q "equal ones for both sides" err

# ONNX Runtime, where it is.
modules=$ROOT/build/bench/onnxruntime/node_modules
code=0
NODE_PATH=$modules bench zoo:mlp,size=tiny --vs onnxruntime --seconds 0.3 >out 2>err || code=$?
if [[ $code == 4 ]]; then
  grep -q "npm install onnxruntime-node" err
else
  [[ $code == 0 ]]
  grep -Eq "^ONNX Runtime .* takes .* times as long \(.* to .*\)$" out
fi

# Inputs that are given up are changed in place.
model=zoo:gpt2_decode,size=tiny
bench $model --seconds 0.01 --donate --profile --json donated.json >out 2>/dev/null
grep -q '"kernel": "dynamic_update' donated.json
grep -Eq "^layer/0/attn/qkv: dot, add +k[0-9]+ " out
cat >step.hone <<'END'
graph @step(%w: f32[64] donate 0, %g: f32[64]) -> f32[64] {
  %v = sub %w, %g
  return %v
}
END
bench step.hone --seconds 0.01 --donate >stepped 2>/dev/null
grep -q "^min " stepped
code=0
bench zoo:mlp,size=tiny --seconds 0.01 --donate 2>err || code=$?
[[ $code == 2 ]]
grep -q "the model changes no input in place" err
