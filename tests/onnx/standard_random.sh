# The ONNX standard's own cases as native code, under random plans for AVX2 that differ from commit
# to commit. ./dev sweep asks for more random plans on each level.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

drawn() { passes --backend native --cache none --plan-seed "$1" --isa "$2"; }
drawn "$commit" avx2
for ((i = 0; i < ${HONE_SWEEP:-0}; ++i)); do
  for isa in x86-64-v2 avx2 avx512; do drawn "$((commit + i))" "$isa"; done
done
