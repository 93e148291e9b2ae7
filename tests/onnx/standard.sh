# The ONNX standard's own cases, as Debian has them, in the three modes: none is wrong, none
# crashes, and docs/conformance.md says what comes out.
data=/usr/share/libonnx-testdata/data
if [[ ! -d $data ]]; then
  echo "skipped: there is no $data (package libonnx-testdata)"
  exit 0
fi
sets=("$data"/{node,simple,pytorch-converted,pytorch-operator})

# Cases whose expected output is not what their model computes. test_adam_multiple was made with
# epsilon = 0.01, but its node does not say so: 1 - 0.1 * 1.85005 / (sqrt(0.5747) + 0.01) = 0.75914
# is expected, and the default of 1e-6 makes 0.75596 of it. With that epsilon stated it passes:
# ConformanceOfTheStandard.AdamMultipleLacksTheEpsilonOfItsData.
echo "wrong node/test_adam_multiple" >known_faults

for mode in "" --constants --symbolic; do
  code=0
  "$HONE" conformance "${sets[@]}" --progress none --verbose --markdown conformance.md \
    ${mode:+"$mode"} >out 2>err || code=$?
  [[ $code == 1 ]] || { cat out err; exit 1; }
  awk '/^(wrong|crashed) / { sub(/:$/, "", $2); print $1, $2 }' out | diff known_faults - ||
    { echo "mode '$mode':"; grep -E "^(wrong|crashed) " out; exit 1; }
  if [[ ! $mode ]]; then
    diff "$ROOT/docs/conformance.md" conformance.md || { echo "./dev docs writes it anew"; exit 1; }
    # Of the node set.
    (($(grep -c "^pass  *node/" out) >= 880))
  fi
done
