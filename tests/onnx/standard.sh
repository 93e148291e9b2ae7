# The ONNX standard's own cases, as Debian has them, in the three modes: none is wrong, none
# crashes, and docs/conformance.md says what comes out.
data=/usr/share/libonnx-testdata/data
if [[ ! -d $data ]]; then
  echo "skipped: there is no $data (package libonnx-testdata)"
  exit 77
fi
sets=("$data"/{node,simple,pytorch-converted,pytorch-operator})

grep -v "^#" "$ROOT/tests/onnx/known_faults.txt" >known_faults

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
