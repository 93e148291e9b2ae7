# Output that could not be written is a failure, and leaves nothing behind.
[[ -e /dev/full ]] || { echo "skipped: there is no /dev/full"; exit 77; }
fails() { # fails WORDS ARGS...
  local code=0 words=$1
  shift
  "$HONE" "$@" >/dev/full 2>err || code=$?
  [[ $code == 5 ]] || { echo "hone $*: exit code $code"; cat err; return 1; }
  grep -q "$words" err || { echo "hone $*:"; cat err; return 1; }
}
"$HONE" zoo export mlp --size tiny -o mlp.hone 2>/dev/null
"$HONE" compile mlp.hone --cache kept --emit asm -o asm 2>/dev/null
lost="cannot write to the standard output: No space left on device"
fails "$lost" help
fails "$lost" compile mlp.hone --cache none --emit plan
# Talk that follows the data sends them off.
fails "$lost" run mlp.hone --cache none
fails "$lost" bench mlp.hone --cache none --seconds 0.1
fails "$lost" cache ls --cache kept

# So is a file that could not, wherever it goes.
full="cannot write '/dev/full': No space left on device"
code=0
"$HONE" compile mlp.hone --cache none --emit plan -o /dev/full 2>err || code=$?
[[ $code == 5 ]] && grep -q "$full" err || { echo "exit code $code"; cat err; exit 1; }

# One that may not become as long; without what is compiled the run is as good.
limited() { # limited ARGS...
  code=0
  (ulimit -c 0 && ulimit -f 1 && exec "$HONE" "$@") >out 2>err || code=$?
}
limited compile mlp.hone --cache none --emit asm -o long
[[ $code == 5 ]] && grep -q "cannot write 'long': File too large" err ||
  { echo "exit code $code"; cat err; exit 1; }
[[ -z $(compgen -G 'long*') ]]
limited zoo export mlp --size tiny -o long.hone
[[ $code == 5 ]] && grep -q "cannot write 'long.npz': File too large" err ||
  { echo "exit code $code"; cat err; exit 1; }
limited run mlp.hone --cache small
[[ $code == 0 && -z $(compgen -G 'small/*.tmp-*') ]] || { echo "exit code $code"; cat err; exit 1; }
