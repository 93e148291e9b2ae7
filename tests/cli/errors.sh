# Each example of docs/errors.md ends with the exit code of its section, and prints nothing else.
# tests/cli/documents.sh checks what it says.
hone() { "$HONE" "$@"; }
"$HONE" help --errors --markdown >errors.md
awk '/^## / { code = $2 + 0; next }
  /^```[^`]*\./ { file = substr($0, 4); next }
  /^```/ { file = ""; next }
  file != "" { print > file; next }
  /^\$ / { print code "\t" substr($0, 3) }' errors.md >examples
[[ $(wc -l <examples) -ge 15 ]]
while IFS=$'\t' read -r wanted line; do
  code=0
  eval "$line" >out 2>err </dev/null || code=$?
  [[ $code == "$wanted" ]] || { echo "$line: exit code $code, not $wanted"; cat err; exit 1; }
  [[ ! -s out || $code == 1 ]] || { echo "$line: a failure wrote to stdout"; exit 1; }
done <examples
"$HONE" help --errors | grep -q "^Exit code 5: "
