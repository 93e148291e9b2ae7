# The ONNX standard's own cases as native code, under random plans for AVX2 that differ from commit
# to commit. ./dev sweep asks for so many more random plans on each level.
. "$ROOT/tests/onnx/standard_cases.bash"

drawn() { passes --backend native --cache none --plan-seed "$1" --isa "$2"; }
seed=$((16#$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null || echo 1)))
drawn "$seed" avx2
for ((i = 0; i < ${HONE_SWEEP:-0}; ++i)); do
  for isa in x86-64-v2 avx2 avx512; do drawn "$((seed + i))" "$isa"; done
done
