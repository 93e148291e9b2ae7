# The ONNX standard's own cases as native code, under the planner's plan: as they are, and with open
# sizes or with constants for inputs, in turns from commit to commit. ./dev sweep asks for all.
. "$ROOT/tests/onnx/standard_cases.bash"

modes=("" --symbolic --constants)
if [[ ! ${HONE_SWEEP:-} ]]; then
  commit=$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null || echo 1)
  modes=("" "${modes[1 + 16#$commit % 2]}")
fi
for mode in "${modes[@]}"; do
  passes --backend native --cache none ${mode:+"$mode"}
done
