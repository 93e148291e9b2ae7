# hone tune finds plans, remembers them, and says what is wrong with its options.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db
hone() { "$HONE" tune --cache none --threads 1 "$@"; }

fails 2 "not a time" zoo:mlp --budget 0s
fails 2 "not a time" zoo:mlp --budget soon
fails 2 "there is no search 'best'" zoo:mlp --search best
fails 2 "there are no decisions 'all' to search alone" zoo:mlp --only all
fails 2 "no decisions ''" zoo:mlp --only layouts,
fails 2 "depends on the open sizes" zoo:mlp,symbolic-batch
fails 3 "cannot" none.onnx
[[ ! -e log.db ]]

# The plan that it gives is one of the model; what was measured is in the log.
hone zoo:mlp,size=tiny --budget 4s --only schedules --seed 3 -o tiny.plan >out 2>err
grep -qE "default plan" out
"$HONE" compile zoo:mlp,size=tiny --cache none --plan tiny.plan >out 2>err
"$HONE" log ls >out
grep -q "kernel" out
"$HONE" log verify >out 2>&1

# It begins with what it knows, and commands that compile do.
hone zoo:mlp,size=tiny --budget 4s --only schedules --seed 3 --json again.json >out 2>err
grep -qE '"reused": [1-9]|"was_known": true' again.json
if grep -q '"was_known": true' again.json; then
  "$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 >out 2>err
  grep -q "the log's plan" err
  "$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 --no-log >out 2>err
  never grep -q "the log's plan" err
fi

# A time of the log is a price.
by_log() { "$HONE" compile zoo:mlp,size=tiny --cache none --threads 1 --cost measured "$@"; }
by_log --emit plan >out 2>err
contains "^# .*: times of the log$"
by_log -o measured.honec >out 2>err
"$HONE" inspect measured.honec >out 2>err
contains "^prices +times of the log"

# A measurement by another version of hone counts for the same code, and for no other.
"$HONE" log export | sed 's/"version":"[^"]*"/"version":"99.0.0"/; /^{"plan"/d' >lines
"$HONE" log import lines --log newer.db 2>err
HONE_LOG=newer.db hone zoo:mlp,size=tiny --budget 4s --only schedules --seed 3 --json other.json \
  >out 2>err
grep -qE '"reused": [1-9]' other.json
[[ $("$HONE" log export --by 99.0.0 --log newer.db | grep -c '^{"record"') == \
  $(grep -c '^{"record"' lines) ]]
sed -E 's/"code":"0x......../"code":"0x00000000/' lines >codes
"$HONE" log import codes --log codes.db 2>err
HONE_LOG=codes.db hone zoo:mlp,size=tiny --budget 4s --only schedules --seed 3 --json other.json \
  >out 2>err
grep -q '"reused": 0' other.json

# Without a log nothing is kept, and a log that is none is refused before the search.
HONE_LOG=$PWD/other.db hone zoo:mlp,size=tiny --budget 1s --no-log >out 2>err
[[ ! -e other.db ]]
echo "this is no log" >text.db
fails 3 "text.db" zoo:mlp,size=tiny --log text.db
# Commands that compile go on without it.
"$HONE" compile zoo:mlp,size=tiny --cache none --log text.db >out 2>err
grep -q "plans of the log are not used" err

# A log that grows no more: the search goes on, and its plan is kept.
code=0
(ulimit -f 40 && exec "$HONE" tune zoo:mlp,size=tiny --cache none --threads 1 --budget 8s \
  --only schedules --seed 9 -o full.plan) >out 2>err || code=$?
[[ $code == 0 ]] || { echo "exit code $code"; cat out err; exit 1; }
[[ $(grep -c "the log lacks" err) == 1 ]]
grep -q "default plan" out
"$HONE" compile zoo:mlp,size=tiny --cache none --plan full.plan >out 2>err
"$HONE" log verify >out 2>&1

# Ctrl-C keeps the best so far, and says so by the exit code. (Once: a second one ends it at once.)
timeout --foreground --preserve-status -s INT 6 "$HONE" tune zoo:mlp --cache none --threads 1 \
  --budget 10m >out 2>err && code=0 || code=$?
[[ $code == 130 ]] || { echo "exit code $code"; cat out err; exit 1; }
grep -qE "default plan" out
