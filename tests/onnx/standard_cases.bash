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
  passes_of "" 880 "$@"
}
# passes_of LETTERS LEAST OPTION...: the same of the cases that begin with one of these letters. At
# least LEAST of them pass.
passes_of() {
  local code=0 letters=${1:+[$1]} least=$2
  shift 2
  "$HONE" conformance "${sets[@]}" ${letters:+--filter "test_$letters*"} "$@" --progress none \
    --verbose >out 2>err || code=$?
  [[ $code == 0 || $code == 1 ]] || { cat out err; exit 1; }
  awk '/^(wrong|crashed) / { sub(/:$/, "", $2); print $1, $2 }' out |
    diff <(grep "/test_$letters" known_faults) - ||
    { echo "'$*':"; grep -E "^(wrong|crashed) " out; exit 1; }
  (($(grep -c "^pass  *node/" out) >= least))
}
