# The ONNX standard's own cases, as Debian has them, in the three modes: none is wrong, none
# crashes, and docs/conformance.md says what comes out.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

passes --markdown conformance.md
diff "$ROOT/docs/conformance.md" conformance.md || { echo "./dev docs writes it anew"; exit 1; }
modes=(--constants --symbolic)
for i in "${!modes[@]}"; do
  in_share "$i" "${#modes[@]}" || continue
  passes "${modes[i]}"
done
