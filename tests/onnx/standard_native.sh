# The ONNX standard's own cases as native code, under the planner's plan in the three modes.
. "$ROOT/tests/onnx/standard_cases.bash"

for mode in "" --symbolic --constants; do
  passes --backend native --cache none ${mode:+"$mode"}
done
