# A log that cannot be written does not stop work that has results of its own, and is told once.
# A path that cannot be written at all is found before the work, and told by the name that the user
# gave.
source "$ROOT/tests/cli/expect.bash"

# Tuning measures until its log may not become longer, and goes on.
tune() { # tune ARGS...
  code=0
  "$HONE" tune zoo:mlp,size=tiny --budget 10s --cache none "$@" >out 2>err || code=$?
}
once() { # once WORDS: on standard error
  [[ $(grep -cF -- "$1" err) == 1 ]] || { echo "'$1' is not there once:"; cat err; return 1; }
}
(
  ulimit -f 120
  tune --log full.db -o best.plan
  [[ $code == 0 ]] || { echo "exit code $code"; cat err; exit 1; }
)
once "cannot write the log 'full.db'"
grep -q '^plan @mlp' best.plan
says "are good" log verify --log full.db
# Without -o the plan would be kept nowhere.
(
  ulimit -f 120
  tune --log full.db
  [[ $code == 5 ]] || { echo "exit code $code"; cat err; exit 1; }
)
has_said "the plan is not kept: cannot write the log 'full.db'"
has_said "hint: -o FILE keeps it"

# A read-only log is read. Root may write where permissions say no.
user=()
if [[ $(id -u) == 0 ]]; then
  command -v setpriv >/dev/null || { echo "skipped: no setpriv"; exit 77; }
  user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  chmod 755 .
  "${user[@]}" test -x "$HONE" || { echo "skipped: another user cannot run $HONE"; exit 77; }
fi
mkdir -m 755 fixed
mkdir -m 777 free
"$HONE" compile zoo:mlp,size=tiny --threads 1 --cache none --emit plan >known.plan 2>err
log_with_plan fixed/log.db zoo:mlp,size=tiny known.plan
if [[ ${#user[@]} == 0 ]]; then
  chmod 444 fixed/log.db
  chmod 555 fixed
  trap 'chmod 755 fixed' EXIT
fi
as_user() { # as_user ARGS...
  code=0
  HOME=$PWD/free "${user[@]}" "$HONE" "$@" >out 2>err || code=$?
}
as_user tune zoo:mlp,size=tiny --threads 1 --budget 10s --cache none --log "$PWD/fixed/log.db" \
  -o free/best.plan
[[ $code == 0 ]] || { echo "exit code $code"; cat err; exit 1; }
once "not kept in the log: cannot use the log"
never grep -q "the log lacks" err
grep -q '^plan @mlp' free/best.plan
contains "the log knew"
# A new one is named where none can be: a mistake. The user's own is missed, and that is told.
as_user tune zoo:mlp,size=tiny --budget 2s --cache none --log "$PWD/fixed/new.db" -o free/2.plan
[[ $code == 3 && ! -e free/2.plan ]] || { echo "exit code $code"; cat err; exit 1; }
HONE_LOG=$PWD/fixed/new.db as_user tune zoo:mlp,size=tiny --budget 2s --cache none -o free/2.plan
[[ $code == 0 ]] || { echo "exit code $code"; cat err; exit 1; }
once "not kept in the log"

# Files in a folder, and files, that may not be written.
printf 'old' >free/old
chmod 444 free/old
for file in fixed/new free/old; do
  for line in "tune zoo:mlp --budget 1h --no-log -o" "calibrate --budget 1h --no-log -o" \
    "target probe -o" "fuzz --count 1000000 --save" "rules generate dot -o"; do
    # shellcheck disable=SC2086
    as_user $line "$PWD/$file"
    [[ $code == 3 ]] || { echo "hone $line $file: exit code $code"; cat err; exit 1; }
    once "cannot write '$PWD/$file': Permission denied"
    [[ $(wc -l <err) == 1 ]] || { echo "hone $line $file has begun:"; cat err; exit 1; }
  done
done
[[ $(<free/old) == old ]]
