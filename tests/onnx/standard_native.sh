# The ONNX standard's own cases as native code, under the planner's plan: as they are, with open
# sizes, and with constants for inputs.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

modes=("" --symbolic --constants)
letters=(a-c d-l m-r s-z)
number=0
for mode in "${modes[@]}"; do
  for part in "${letters[@]}"; do
    in_share "$((number++))" 12 || continue
    passes_of "$part" 100 --backend native --cache none ${mode:+"$mode"}
  done
done
