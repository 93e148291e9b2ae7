# The ONNX standard's own cases as native code: under the planner's plan in the three modes, and
# under random plans for AVX2 that differ from commit to commit. ./dev sweep asks for so many random
# plans on each level.
data=/usr/share/libonnx-testdata/data
if [[ ! -d $data ]]; then
  echo "skipped: there is no $data (package libonnx-testdata)"
  exit 77
fi
sets=("$data"/{node,simple,pytorch-converted,pytorch-operator})
grep -v "^#" "$ROOT/tests/onnx/known_faults.txt" >known_faults

seed=$((16#$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null || echo 1)))
ways=("" --symbolic --constants)
for plan in "$seed" "$((seed + 1))"; do ways+=("--plan-seed $plan --isa avx2"); done
for ((i = 0; i < ${HONE_SWEEP:-0}; ++i)); do
  for isa in x86-64-v2 avx2 avx512; do ways+=("--plan-seed $((seed + i)) --isa $isa"); done
done
for way in "${ways[@]}"; do
  code=0
  # shellcheck disable=SC2086  # a way is words
  "$HONE" conformance "${sets[@]}" --backend native --cache none $way --progress none --verbose \
    >out 2>err || code=$?
  [[ $code == 1 ]] || { cat out err; exit 1; }
  awk '/^(wrong|crashed) / { sub(/:$/, "", $2); print $1, $2 }' out | diff known_faults - ||
    { echo "'$way':"; grep -E "^(wrong|crashed) " out; exit 1; }
  (($(grep -c "^pass  *node/" out) >= 880))
done
