# Output that could not be written is a failure.
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
