# The ONNX standard's own cases as native code, under the planner's plan: as they are, with open
# sizes, and with constants for inputs.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

modes=("" --symbolic --constants)
for i in "${!modes[@]}"; do
  in_share "$i" "${#modes[@]}" || continue
  passes --backend native --cache none ${modes[i]:+"${modes[i]}"}
done
