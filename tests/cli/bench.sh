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
grep -q "the figures mean little: .*the machine's load is" err

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
grep -Eq "^value_[0-9]+_(node)?(:| |\.\.).*%$" profile

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

# Other engines, which a program stands in for: it answers as Python would.
cat >engine <<'END'
#!/usr/bin/env bash
# -c SCRIPT ENGINE MODEL FOLDER THREADS SECONDS WRITES
engine=$3 model=$4 folder=$5
case $engine in
  openvino) took=0.5 ;;
  torch) took=0.25 ;;
  inductor) [[ ! $model ]] || { echo "cannot run it" >&2; exit 1; } ;;
  *) exit 77 ;;
esac
[[ $8 != 1 ]] || cp "$RIGHT" "$folder/out0.npy"
echo "a line of a library"
seconds=
[[ ! $model || $7 == 0 ]] || seconds="$took, $took, $took"
[[ ! $model ]] || { [[ -s $model && -s $folder/in0.npy && $6 == 1 ]] && echo asked >>"$ASKED"; }
echo "{\"version\": \"1.2\", \"seconds\": [$seconds]}"
END
chmod +x engine
"$HONE" run zoo:mlp,size=tiny --threads 1 --cache none -o right.npy >run 2>/dev/null
export RIGHT=$PWD/right.npy ASKED=$PWD/asked
rivals() { bench zoo:mlp,size=tiny --threads 1 --seconds 0.1 --python "$PWD/engine" "$@"; }
rivals --vs openvino --json rival.json >out 2>err
grep -Eq "^OpenVINO 1.2 \(Python\): min 500 ms" out
grep -Eq "^OpenVINO 1.2 \(Python\) takes .* times as long \(.* to .*\); outputs differ by at" out
grep -Eq '"difference": ([0-9.]+e-|0)' rival.json
[[ $(wc -l <asked) == 9 ]]  # a block for each round, and the outputs before
rivals --vs best --json rival.json >out 2>err
grep -q "^did not run: ONNX Runtime: .*pip install onnxruntime" out
grep -q "^did not run: PyTorch Inductor: .*cannot run it" out
[[ $(grep "takes" out | tail -1) == "PyTorch 1.2"* ]]  # the fastest is the last
[[ $(grep -c "takes" out) == 2 ]]
grep -q '"slower_rivals": \[' rival.json
code=0
rivals --vs onnxruntime >out 2>err || code=$?
[[ $code == 4 ]] && grep -q "pip install onnxruntime" err
code=0
rivals --vs inductor >out 2>err || code=$?
[[ $code == 3 ]] && grep -q "cannot run it" err
code=0
HONE_PYTHON=$PWD/none bench zoo:mlp,size=tiny --vs torch 2>err || code=$?
[[ $code == 4 ]] && grep -q "pip install torch onnx2torch" err
RIGHT=$PWD/step.npy
"$HONE" run zoo:mlp,size=tiny --seed 5 --cache none -o step.npy >run 2>/dev/null
rivals --vs torch >out 2>/dev/null
grep -Eq "differ by at most [0-9.]+e[-+]0[01] of" out
code=0
bench zoo:mlp,size=tiny --python x 2>err || code=$?
[[ $code == 2 ]] && grep -q "engines of --vs" err

# Against other times.
bench zoo:mlp,size=tiny --threads 1 --seconds 0.05 --record speed.json >out 2>/dev/null
grep -Eq "^zoo:mlp,size=tiny .*--threads 1.*: .* in the median of 5 sessions$" out
bench zoo:mlp,size=tiny --threads 1 --seconds 0.03 --sessions 3 --record speed.json >out 2>/dev/null
grep -q "of 8 sessions$" out
"$HONE" bench --baseline speed.json --fail-below 0.01 --json now.json >out 2>/dev/null
grep -Eq "^zoo:mlp.* [0-9.]+ +1$" out && grep -q '"is_slower": false' now.json
# It was a thousand times as fast once.
sed -E '/"sessions": \[/,/\]/ s/^( +)[0-9][0-9.e-]*(,?)$/\11e-9\2/' speed.json >fast.json
code=0
"$HONE" bench --baseline fast.json --json - >now.json 2>err || code=$?
[[ $code == 1 ]] && grep -q "zoo:mlp" err && grep -q '"is_slower": true' now.json
grep -q "1 of 1 below 0.95 of the recorded speed" err
code=0
bench --baseline speed.json 2>err || code=$?
[[ $code == 2 ]] && grep -q -e "--cache" err
refused() { # refused CODE WORDS ARGUMENTS
  code=0
  "$HONE" bench "${@:3}" >out 2>err || code=$?
  [[ $code == "$1" ]] && grep -q -e "$2" err
}
refused 2 "needs a MODEL"
refused 2 "is for --record" zoo:mlp --sessions 3
refused 2 "is for --baseline" zoo:mlp --fail-below 0.5
refused 2 "does not go with --record" zoo:mlp --record r.json --vs best
refused 2 "above 0" --baseline speed.json --fail-below 1.5
refused 2 "a file" zoo:mlp --record -
refused 3 "none.json" --baseline none.json
refused 3 "has no 'zoo:dlrm'" zoo:dlrm --baseline speed.json
sed 's/avx[0-9]*\|x86-64-v2/other/' speed.json >elsewhere.json
refused 3 "recorded on" --baseline elsewhere.json
sed 's/"--threads"/"--json"/' speed.json >writes.json
refused 3 "--json" --baseline writes.json
sed '/"sessions": \[/,/\]/ { /^ *[0-9]/d; s/\[$/[1/ }' speed.json >few.json
refused 3 "1 sessions, too few" --baseline few.json
echo '{"models": 3}' >odd.json
refused 3 "not a baseline.*odd.json" --baseline odd.json

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
