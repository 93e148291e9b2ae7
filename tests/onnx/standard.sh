# The ONNX standard's own cases, as Debian has them, in one of three modes: none is wrong, none
# crashes, and docs/conformance.md says what comes out.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

if in_share 0 3; then
  passes --markdown conformance.md
  diff "$ROOT/docs/conformance.md" conformance.md || { echo "./dev docs writes it anew"; exit 1; }
fi
if in_share 1 3; then passes --constants; fi
if in_share 2 3; then passes --symbolic; fi
