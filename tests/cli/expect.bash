# What scripts of this folder expect of commands; they begin with `source "$ROOT/tests/cli/expect.bash"`.
# Standard output is left in `out`, standard error in `err`.

# The command that is tested. A script about one of them may say more: hone() { "$HONE" tune "$@"; }
hone() { "$HONE" "$@"; }

has_said() { # has_said WORDS COMMAND...: on standard error
  grep -qF -- "$1" err && return
  echo "hone ${*:2}: no '$1' in:"
  cat err
  return 1
}
says() { # says WORDS ARGS...
  local words=$1
  shift
  hone "$@" >out 2>err || { echo "hone $*: exit code $?"; cat err; return 1; }
  has_said "$words" "$@"
}
# A comparison that failed (1) may have printed it; other failures print nothing.
fails() { # fails CODE WORDS ARGS...
  local code=0 wanted=$1 words=$2
  shift 2
  hone "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || { echo "hone $*: exit code $code, not $wanted"; cat err; return 1; }
  [[ $code == 1 || ! -s out ]] || { echo "hone $*: a failure wrote to stdout"; return 1; }
  has_said "$words" "$@"
}
contains() { # contains PATTERN: a line of standard output
  grep -qE -- "$1" out || { echo "no '$1' in:"; cat out; return 1; }
}
