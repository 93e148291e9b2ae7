# The generated pages of docs/ are current; `./dev docs` writes them anew. tests/onnx/standard.sh
# checks docs/conformance.md, which takes longer.
"$HONE" ops --markdown | diff "$ROOT/docs/ops.md" -
"$HONE" ops --onnx --markdown | diff "$ROOT/docs/onnx-ops.md" -
"$HONE" help --markdown | diff "$ROOT/docs/cli.md" -
# The README shows what is printed, but for times, how many kernels the plan for this processor has,
# and what it leaves out as "...".
export XDG_CACHE_HOME=$PWD/cache
hone() { "$HONE" "$@"; }
awk '/^```/ { is_code = !is_code; is_shown = 0; next }
  is_code && /^\$ / { is_shown = 1 }
  is_code && is_shown' "$ROOT/README.md" >transcript
while IFS= read -r line; do
  if [[ $line == '$ '* ]]; then
    eval "${line#\$ }" >said 2>&1 </dev/null || { echo "README: $line"; cat said; exit 1; }
    continue
  fi
  [[ -n $line ]] || continue
  # shellcheck disable=SC2016  # what has a meaning in patterns
  pattern=$(sed -E 's/[][\.|$(){}?+*^]/\\&/g; s/\\\.\\\.\\\./.*/g
    s/[0-9]+(\\\.[0-9]+)? [mun]?s$/[0-9.]+ [a-z]+/
    s/^[0-9]+ kernels /[0-9]+ kernels? /' <<<"$line")
  grep -Eq -- "^$pattern$" said || { echo "README: nothing printed is '$line'"; cat said; exit 1; }
done <transcript
# The commands that it shows elsewhere exist.
sed -nE 's/^\$ (\.\/run|hone) //p' "$ROOT/README.md" | while read -r command rest; do
  "$HONE" help "$command" >/dev/null || { echo "README: $command $rest"; exit 1; }
done
# So do the models of the zoo that examples name.
"$HONE" zoo list >listed
grep -Eho "(^hone zoo export |zoo:)[a-z0-9_]+" "$ROOT/README.md" "$ROOT/docs/cli.md" |
  sed 's/.*[ :]//' | sort -u >models
[[ -s models ]]
while read -r model; do
  grep -q "^$model " listed || { echo "docs: there is no model $model"; exit 1; }
done <models
