# Whole models from outside of the repository: nine architectures without real weights run, and five
# with weights give what another runtime gave.
models=$ROOT/../shared/models
if [[ ! -d $models ]]; then
  echo "skipped: there is no $models"
  exit 77
fi
for model in "$models"/light/*.onnx; do
  "$HONE" run "$model" --seed 1 --numerics fp32 --progress none
done
"$HONE" conformance "$models/real" --rtol 1e-3 --atol 1e-4 --progress none --verbose
