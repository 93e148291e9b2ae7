# The ONNX standard's own cases as native code, under the planner's plan: as they are, with open
# sizes, and with constants for inputs.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

modes=("" --symbolic --constants)
letters=(a-l m-z)
number=0
for mode in "${modes[@]}"; do
  for half in "${letters[@]}"; do
    in_share "$((number++))" 6 || continue
    passes_of "$half" 200 --backend native --cache none ${mode:+"$mode"}
  done
done
