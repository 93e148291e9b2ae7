# The ONNX standard's own cases as native code: under the planner's plan, and under random plans for
# AVX2 that differ from commit to commit.
data=/usr/share/libonnx-testdata/data
if [[ ! -d $data ]]; then
  echo "skipped: there is no $data (package libonnx-testdata)"
  exit 77
fi
sets=("$data"/{node,simple,pytorch-converted,pytorch-operator})
grep -v "^#" "$ROOT/tests/onnx/known_faults.txt" >known_faults

seed=$((16#$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null || echo 1)))
for plan in "" "--plan-seed $seed --isa avx2" "--plan-seed $((seed + 1)) --isa avx2"; do
  code=0
  # shellcheck disable=SC2086  # the plan is words
  "$HONE" conformance "${sets[@]}" --backend native --cache none $plan --progress none --verbose \
    >out 2>err || code=$?
  [[ $code == 1 ]] || { cat out err; exit 1; }
  awk '/^(wrong|crashed) / { sub(/:$/, "", $2); print $1, $2 }' out | diff known_faults - ||
    { echo "plan '$plan':"; grep -E "^(wrong|crashed) " out; exit 1; }
  (($(grep -c "^pass  *node/" out) >= 880))
done
