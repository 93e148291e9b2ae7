# The generated pages of docs/ are current; `./dev docs` writes them anew. tests/onnx/standard.sh
# checks docs/conformance.md, which takes longer.
"$HONE" ops --markdown | diff "$ROOT/docs/ops.md" -
"$HONE" ops --onnx --markdown | diff "$ROOT/docs/onnx-ops.md" -
"$HONE" help --markdown | diff "$ROOT/docs/cli.md" -
# The commands that the README shows exist.
sed -nE 's/^\$ (\.\/run|hone) //p' "$ROOT/README.md" | while read -r command rest; do
  "$HONE" help "$command" >/dev/null || { echo "README: $command $rest"; exit 1; }
done
