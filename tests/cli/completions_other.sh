# The zsh and fish scripts have every command and option; shells that are here accept them.
for shell in zsh fish; do
  "$HONE" completions $shell >script.$shell
  for word in inspect export numerics symbolic-batch resnet50 cse; do
    grep -q -- "$word" script.$shell
  done
done
if command -v zsh >/dev/null; then zsh -n script.zsh; fi
if command -v fish >/dev/null; then
  fish --no-execute script.fish
  fish -c 'source script.fish; complete -C "hone zoo exp"' | grep >/dev/null "^export"
  fish -c 'source script.fish; complete -C "hone run --numerics w"' | grep >/dev/null "^wide"
fi
"$HONE" completions csh 2>err && exit 1
grep -q "not one of bash, zsh, fish" err
