#!/usr/bin/env bash
# tools/gpu.sh [-o FILE] [-f FOLDER] [-m "MODEL..."] [-t SECONDS] [-s SECONDS]: what one visit to a
# machine with an NVIDIA GPU is for, in at most 5 minutes. Figures come first: models of batch 1,
# products, kernels that memory bounds, models of batch 32, each beside torch and jax if they are
# there, in turns. Then it checks models of the zoo (-m: these) and the node tests of ONNX, and
# measures a data set. All of it goes to FILE (gpu.txt), which documents quote; its lines "figure"
# are the table. Kernels by many schedules go to a data set beside it (gpu.set), from which it
# learns a price (gpu.price).
#
# tools/gpu.sh -p FOLDER: before the visit, on any machine. It makes the models in tf32 and bf16
# that -f takes, and compiled files of all, and says how large these are and how long they took.
#
# A step has a deadline (at most -s), and all together have one (-t). One that fails or takes too
# long is noted, and the next one follows. Exit code: 0 all is well, 1 a step failed, 77 there is no
# GPU. HONE names the program (build/release/hone), PYTHON the one that has the rivals.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

out=gpu.txt all=300 most=60 made="" prepared=""
models="mlp lstm squeezenet mobilenet_v2 resnet18 resnet50 vit_b16 bert_base gpt2 gpt2_decode"
models+=" unet"
timed="resnet50 mobilenet_v2 bert_base gpt2 gpt2_decode vit_b16 unet"
types="f32 tf32 bf16" batches="1 32"
chosen=false
# No tile divides the checked products. In bf16 and f16 warpgroups multiply where the GPU is an H100
# or the like.
checked=("bf16 200 136 1000" "f16 129 257 72" "f32 200 320 1000" "bf16 512 768 4096")
product_types="f32 tf32 bf16 f16"
shapes=("8192 8192 8192" "4096 4096 4096" "2048 2048 2048" "1024 1024 1024" "4096 2304 768")
shapes+=("4096 768 768" "4096 3072 768" "4096 768 3072" "128 2304 768" "128 768 768")
shapes+=("128 3072 768" "128 768 3072")
kernels="exp gelu softmax layer_norm transpose sum_rows sum_columns"
while getopts "o:m:t:s:f:p:" option; do
  case $option in
    o) out=$OPTARG ;;
    m) models=$OPTARG timed=$OPTARG chosen=true ;;
    t) all=$OPTARG ;;
    s) most=$OPTARG ;;
    f) made=$OPTARG ;;
    p) prepared=$OPTARG ;;
    *) exit 2 ;;
  esac
done
hone=${HONE:-$root/build/release/hone} python=${PYTHON:-python3}
node=/usr/share/libonnx-testdata/data/node
size=""
if $chosen; then
  size=,size=tiny types=f32 batches=1 product_types="f32 bf16" kernels="exp softmax"
  checked=("${checked[1]}") shapes=("${shapes[11]}")
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cache=$scratch/cache failed=0 begin=$SECONDS median=-
if [[ ! -x $hone ]]; then
  echo "there is no program $hone: ./run builds it" >&2
  exit 2
fi

# step SECONDS NAME COMMAND...: runs it, with a line of how it went and all that it says.
step() {
  local limit=$1 name=$2 left=$((all - SECONDS + begin)) start=$EPOCHREALTIME code=0 how took
  shift 2
  median=-
  if ((limit > most)); then limit=$most; fi
  if ((limit > left)); then limit=$left; fi
  if ((limit <= 0)); then
    echo "== $name: left out, no time is left" >>"$out"
    return
  fi
  timeout --kill-after=5 "$limit" "$@" >"$scratch/said" 2>&1 || code=$?
  took=$(((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}) / 1000))
  case $code in
    0) how=good ;;
    124 | 137) how="past its deadline of $limit s" ;;
    *) how="FAILED, exit code $code" ;;
  esac
  if ((code != 0)); then failed=1; fi
  { echo "== $name: $how, $took ms"; sed 's/^/   /' "$scratch/said"; } >>"$out"
  echo "$name: $how"
  median=$(sed -nE 's/^min .*, median ([^,]*),.*/\1/p' "$scratch/said")
  median=${median:--}
}

# source_of MODEL BATCH TYPE: the model as hone takes it; empty: it is not there.
source_of() {
  local file=$made/$1.$2.$3.hone batch=,batch=$2
  if [[ $3 != f32 ]]; then
    if [[ -n $made && -e $file ]]; then echo "$file"; fi
    return
  fi
  if [[ $2 == 1 ]]; then batch=""; fi
  echo "zoo:$1$batch$size"
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

# A kernel whose time is that of its bytes: 256 MiB are read.
rows=8192 columns=8192
if $chosen; then rows=64 columns=64; fi
kernel() {
  local result="f32[$rows, $columns]" vectors="" op
  case $1 in
    exp) op="exp %x" ;;
    gelu) op="gelu %x" ;;
    softmax) op="softmax %x {axis = 1}" ;;
    layer_norm)
      vectors=", %g: f32[$columns], %b: f32[$columns]"
      op="layer_norm %x, %g, %b {axis = 1}"
      ;;
    transpose) op="transpose %x {permutation = [1, 0]}" result="f32[$columns, $rows]" ;;
    sum_rows) op="reduce %x {kind = sum, axes = [1]}" result="f32[$rows]" ;;
    sum_columns) op="reduce %x {kind = sum, axes = [0]}" result="f32[$columns]" ;;
  esac
  echo "graph @$1(%x: f32[$rows, $columns]$vectors) -> $result { %y = $op return %y }" \
    >"$scratch/$1.hone"
}

# ---- Before the visit ---------------------------------------------------------------------------

if [[ -n $prepared ]]; then
  mkdir -p "$prepared"
  out=$prepared/prepared.txt all=100000 most=3600
  : >"$out"
  for batch in $batches; do
    for model in $timed; do
      made=$prepared
      for type in ${types/f32/}; do
        source=$(source_of "$model" "$batch" f32)
        step 3600 "$model, batch $batch, in $type" "$hone" quantize "$source" --to "$type" \
          --trials 0 -o "$prepared/$model.$batch.$type.hone" --progress none
      done
      for type in $types; do
        file=$prepared/$model.$batch.$type.honec
        source=$(source_of "$model" "$batch" "$type")
        if [[ -z $source ]]; then continue; fi
        step 3600 "file of $model, batch $batch, in $type" "$hone" compile "$source" \
          --target sm_90 -o "$file" --cache none --progress none
        if [[ -e $file ]]; then
          echo "figure file $model $batch $type: $(stat -c %s "$file") bytes" >>"$out"
          rm -f "$file"
        fi
      done
    done
  done
  echo "wrote $out"
  exit $failed
fi

# ---- Rivals -------------------------------------------------------------------------------------

# Each is a process that reads questions and writes answers, a line each. It loads its libraries
# while hone computes its first figures.
declare -A questions answers process
start_rival() {
  local name=$1 to from
  mkfifo "$scratch/$name.to" "$scratch/$name.from"
  "$python" "$root/tools/gpu_rivals.py" "$name" <"$scratch/$name.to" >"$scratch/$name.from" \
    2>"$scratch/$name.errors" &
  process[$name]=$!
  exec {to}>"$scratch/$name.to" {from}<"$scratch/$name.from"
  questions[$name]=$to answers[$name]=$from
}
# ask RIVAL SECONDS QUESTION: its answer, in $answer. One that does not answer is asked no more.
ask() {
  local limit=$2 left=$((all - SECONDS + begin))
  answer=""
  if [[ -z ${process[$1]:-} ]]; then return; fi
  if ((limit > most)); then limit=$most; fi
  if ((limit > left)); then limit=$left; fi
  if ((limit <= 0)); then return; fi
  echo "$3" >&"${questions[$1]}" || true
  if IFS= read -r -t "$limit" -u "${answers[$1]}" answer; then return; fi
  answer="no answer in $limit s"
  kill "${process[$1]}" 2>/dev/null || true
  unset "process[$1]"
}

# figure LIMIT QUESTION COMMAND...: a figure of hone beside those of the rivals to this question.
figure() {
  local limit=$1 question=$2 line
  shift 2
  step "$limit" "bench $question" "$@"
  line="figure $question: hone $median"
  for rival in torch jax; do
    ask "$rival" 30 "$question"
    if [[ -n $answer ]]; then line+="; $rival $answer"; fi
  done
  echo "$line" >>"$out"
}

time_models() { # of a batch
  local model type source
  for type in $types; do
    for model in $timed; do
      source=$(source_of "$model" "$1" "$type")
      if [[ -z $source ]]; then
        echo "figure model $model $1 $type: left out, no file of -f has it" >>"$out"
        continue
      fi
      figure 25 "model $model $1 $type" "$hone" bench "$source" --device cuda --seconds 0.5 \
        --profile --cache "$cache" --progress none
    done
  done
}

# ---- The visit ----------------------------------------------------------------------------------

if ! "$hone" target list 2>/dev/null | grep -q '^cuda:0 '; then
  echo "there is no GPU here that hone can use; '$hone doctor' says why" >&2
  exit 77
fi
: >"$out"
for rival in torch jax; do
  if "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$rival') is None)" \
    2>/dev/null; then
    start_rival "$rival"
  else
    echo "== figures of $rival: left out, $python has no $rival" >>"$out"
  fi
done
step 20 doctor "$hone" doctor
step 20 "target probe" "$hone" target probe --device cuda
if command -v nvidia-smi >/dev/null; then
  asked=clocks.sm,clocks.mem,power.draw,clocks_throttle_reasons.active
  step 10 clocks nvidia-smi --query-gpu="$asked" --format=csv
fi
for shape in "${checked[@]}"; do
  # shellcheck disable=SC2086  # four words
  product checked $shape
  step 20 "check product $shape" "$hone" check "$scratch/checked.hone" --device cuda \
    --cache "$cache" --progress none
done
first=${timed%% *}
step 30 "first result of $first" "$hone" run "zoo:$first$size" --device cuda --cache none \
  --progress none
time_models 1
for type in $product_types; do
  for shape in "${shapes[@]}"; do
    written=${type/tf32/f32}
    # shellcheck disable=SC2086  # three words
    product timed "$written" $shape
    source=$scratch/timed.hone
    if [[ $type == tf32 ]]; then
      step 10 "product in tf32 $shape" "$hone" quantize "$source" --to tf32 --trials 0 \
        -o "$scratch/timed.tf32.hone" --progress none
      source=$scratch/timed.tf32.hone
    fi
    if [[ -e $source ]]; then
      figure 10 "product $type $shape" "$hone" bench "$source" --device cuda --seconds 0.2 \
        --cache "$cache" --progress none
    fi
    rm -f "$scratch/timed.tf32.hone"
  done
done
for one in $kernels; do
  kernel "$one"
  figure 10 "kernel $one $rows $columns" "$hone" bench "$scratch/$one.hone" --device cuda \
    --seconds 0.2 --cache "$cache" --progress none
done
for batch in $batches; do
  if [[ $batch != 1 ]]; then time_models "$batch"; fi
done
for rival in torch jax; do
  ask "$rival" 10 "kernel copy $rows $columns"
  if [[ -n $answer ]]; then echo "figure kernel copy $rows $columns: $rival $answer" >>"$out"; fi
done
for pid in "${process[@]}"; do kill "$pid" 2>/dev/null || true; done

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
set=${out%.txt}.set price=${out%.txt}.price zoo=()
for model in $models; do zoo+=("zoo:$model$size"); done
if ! $chosen; then
  product square bf16 4096 4096 4096
  zoo+=("$scratch/square.hone")
fi
step 50 "data set" "$hone" dataset build "${zoo[@]}" -o "$set" --device cuda --budget 35s \
  --each 2s --schedules 16 --progress none
step 10 "price" "$hone" train cost "$set" -o "$price"
echo "== done in $((SECONDS - begin)) s" >>"$out"
echo "wrote $out"
exit $failed
