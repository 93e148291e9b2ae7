# Help comes for each command, in three ways; it is data, so it goes to stdout.
"$HONE" help >all
for command in "zoo list" "zoo export" inspect run opt ops completions man version help; do
  grep -q "^  $command " all
  # shellcheck disable=SC2086  # a group and its member are two words
  "$HONE" help $command >a
  # shellcheck disable=SC2086
  "$HONE" $command --help >b
  cmp a b
  grep -q "hone $command \[OPTION\]" a
done
"$HONE" --help | cmp - all
"$HONE" -h | cmp - all
(($(wc -L <all) <= 100))
"$HONE" help zoo | grep >/dev/null "hone zoo export"
[[ $("$HONE" --version) == $("$HONE" version) ]]
