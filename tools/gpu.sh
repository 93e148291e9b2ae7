#!/usr/bin/env bash
# tools/gpu.sh [-o FILE] [-m "MODEL..."] [-t SECONDS] [-s SECONDS]: what one visit to a machine with
# an NVIDIA GPU is for, in at most 5 minutes. It checks models of the zoo (-m: these) and the node
# tests of ONNX. It times models and their kernels, and products beside those of torch and jax, if
# they are installed. All of it goes to FILE (gpu.txt), which documents quote. Kernels by many
# schedules go to a data set beside it (gpu.set), from which it learns a price (gpu.price).
#
# A step has a deadline (at most -s), and all together have one (-t). One that fails or takes too
# long is noted, and the next one follows. Exit code: 0 all is well, 1 a step failed, 77 there is no
# GPU. HONE names the program (build/release/hone), PYTHON the one that has the rivals.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

out=gpu.txt all=300 most=60
models="mlp lstm squeezenet mobilenet_v2 resnet18 resnet50 vit_b16 bert_base gpt2 gpt2_decode"
models+=" unet"
chosen=false
# Types and shapes of products. No tile divides the checked ones. Rivals have the same timed ones
# (tools/gpu_rivals.py). In bf16 and f16 warpgroups multiply where the GPU is an H100 or the like.
checked=("bf16 200 136 1000" "f16 129 257 72" "f32 200 320 1000" "bf16 512 768 4096")
timed=("f32 1024 1024 1024" "f32 4096 4096 4096" "f32 128 768 3072" "f32 1 768 3072")
timed+=("bf16 1024 1024 1024" "bf16 4096 4096 4096" "bf16 8192 8192 8192" "bf16 128 768 3072")
while getopts "o:m:t:s:" option; do
  case $option in
    o) out=$OPTARG ;;
    m) models=$OPTARG chosen=true ;;
    t) all=$OPTARG ;;
    s) most=$OPTARG ;;
    *) exit 2 ;;
  esac
done
hone=${HONE:-$root/build/release/hone} python=${PYTHON:-python3}
node=/usr/share/libonnx-testdata/data/node

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cache=$scratch/cache failed=0 begin=$SECONDS

# step SECONDS NAME COMMAND...: runs it, with a line of how it went and all that it says.
step() {
  local limit=$1 name=$2 left=$((all - SECONDS + begin)) start=$SECONDS code=0 how
  shift 2
  if ((limit > most)); then limit=$most; fi
  if ((limit > left)); then limit=$left; fi
  if ((limit <= 0)); then
    echo "== $name: left out, no time is left" >>"$out"
    return
  fi
  timeout --kill-after=5 "$limit" "$@" >"$scratch/said" 2>&1 || code=$?
  case $code in
    0) how=good ;;
    124 | 137) how="past its deadline of $limit s" ;;
    *) how="FAILED, exit code $code" ;;
  esac
  if ((code != 0)); then failed=1; fi
  { echo "== $name: $how, $((SECONDS - start)) s"; sed 's/^/   /' "$scratch/said"; } >>"$out"
  echo "$name: $how"
}

# product NAME TYPE ROWS COLUMNS DEPTH: a product by rows of weights, as hone computes it.
product() {
  cat >"$scratch/$1.hone" <<END
graph @$1(%a: $2[$3, $5], %b: $2[$4, $5]) -> $2[$3, $4] {
  %c = dot %a, %b {lhs_contract = [1], rhs_contract = [1]}
  return %c
}
END
}

if [[ ! -x $hone ]]; then
  echo "there is no program $hone: ./run builds it" >&2
  exit 2
fi
if ! "$hone" target list 2>/dev/null | grep -q '^cuda:0 '; then
  echo "there is no GPU here that hone can use; '$hone doctor' says why" >&2
  exit 77
fi
: >"$out"
step 20 doctor "$hone" doctor
step 20 "target probe" "$hone" target probe --device cuda
for model in $models; do
  step 20 "check $model" "$hone" check "zoo:$model,size=tiny" --device cuda --cache "$cache" \
    --progress none
done
if $chosen; then
  echo "== node tests: left out, models were chosen" >>"$out"
elif [[ -d $node ]]; then
  step 60 "node tests" "$hone" conformance "$node" --device cuda --cache "$cache" --time-limit 10 \
    --progress none
else
  echo "== node tests: left out, there is no $node" >>"$out"
fi
if $chosen; then checked=("${checked[1]}") timed=("${timed[3]}" "${timed[7]}"); fi
for shape in "${checked[@]}"; do
  # shellcheck disable=SC2086  # four words
  product checked $shape
  step 20 "check product $shape" "$hone" check "$scratch/checked.hone" --device cuda \
    --cache "$cache" --progress none
done
# Prices and times of kernels side by side are what a price is fitted by.
for model in $models; do
  size=""
  if $chosen; then size=,size=tiny; fi
  step 25 "bench $model" "$hone" bench "zoo:$model$size" --device cuda --seconds 1 --profile \
    --cache "$cache" --progress none
done
set=${out%.txt}.set price=${out%.txt}.price zoo=()
for model in $models; do
  if $chosen; then zoo+=("zoo:$model,size=tiny"); else zoo+=("zoo:$model"); fi
done
if ! $chosen; then
  product square bf16 4096 4096 4096
  zoo+=("$scratch/square.hone")
fi
step 50 "data set" "$hone" dataset build "${zoo[@]}" -o "$set" --device cuda --budget 35s \
  --each 2s --schedules 16 --progress none
step 10 "price" "$hone" train cost "$set" -o "$price"
for shape in "${timed[@]}"; do
  # shellcheck disable=SC2086  # four words
  product timed $shape
  step 5 "plan of product $shape" "$hone" compile "$scratch/timed.hone" --device cuda --emit plan \
    --cache "$cache" --progress none
  step 20 "product $shape" "$hone" bench "$scratch/timed.hone" --device cuda --seconds 1 \
    --cache "$cache" --progress none
done
for rival in torch jax; do
  if "$python" -c "import $rival" 2>/dev/null; then
    step 60 "products by $rival" "$python" "$root/tools/gpu_rivals.py" "$rival"
  else
    echo "== products by $rival: left out, $python has no $rival" >>"$out"
  fi
done
echo "== done in $((SECONDS - begin)) s" >>"$out"
echo "wrote $out"
exit $failed
