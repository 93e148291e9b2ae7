# The generated pages of docs/ are current; `./dev docs` writes them anew.
"$HONE" ops --markdown | diff "$ROOT/docs/ops.md" -
"$HONE" help --markdown | diff "$ROOT/docs/cli.md" -
# The commands that the README shows exist.
sed -nE 's/^\$ (\.\/run|hone) //p' "$ROOT/README.md" | while read -r command rest; do
  "$HONE" help "$command" >/dev/null || { echo "README: $command $rest"; exit 1; }
done
