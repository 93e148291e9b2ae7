# The ONNX standard's own cases, as Debian has them, in the three modes: none is wrong, none
# crashes, and docs/conformance.md says what comes out.
. "$ROOT/tests/onnx/standard_cases.bash"

passes --markdown conformance.md
diff "$ROOT/docs/conformance.md" conformance.md || { echo "./dev docs writes it anew"; exit 1; }
passes --constants
passes --symbolic
