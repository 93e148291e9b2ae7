# For scripts that run the ONNX standard's own cases as native code.
data=/usr/share/libonnx-testdata/data
if [[ ! -d $data ]]; then
  echo "skipped: there is no $data (package libonnx-testdata)"
  exit 77
fi
sets=("$data"/{node,simple,pytorch-converted,pytorch-operator})
grep -v "^#" "$ROOT/tests/onnx/known_faults.txt" >known_faults

# passes OPTION...: no case is wrong or crashes but those whose expectation is at fault.
passes() {
  local code=0
  "$HONE" conformance "${sets[@]}" "$@" --progress none --verbose >out 2>err || code=$?
  [[ $code == 1 ]] || { cat out err; exit 1; }
  awk '/^(wrong|crashed) / { sub(/:$/, "", $2); print $1, $2 }' out | diff known_faults - ||
    { echo "'$*':"; grep -E "^(wrong|crashed) " out; exit 1; }
  (($(grep -c "^pass  *node/" out) >= 880))
}
