# The ONNX standard's own cases as native code, under random plans for AVX2. Both the cases of a
# share and the plans differ from commit to commit. ./dev sweep asks for all of them, with more
# random plans on each level.
. "$ROOT/tests/onnx/standard_cases.bash"
. "$ROOT/tests/share.bash"

drawn=(--backend native --cache none)
parts=(a-b c-d e-i j-m n-q r s t-z)
if [[ ! ${HONE_SWEEP:-} ]]; then
  passes_of "${parts[commit % 8]}" 60 "${drawn[@]}" --plan-seed "$commit" --isa avx2
fi
for ((i = 0; i < ${HONE_SWEEP:-0}; ++i)); do
  for isa in x86-64-v2 avx2 avx512; do
    passes "${drawn[@]}" --plan-seed "$((commit + i))" --isa "$isa"
  done
done
