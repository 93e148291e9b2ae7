# The log of measurements is listed, shown, exchanged, checked and cleaned up, wherever it is.
source "$ROOT/tests/cli/expect.bash"

# The user's own that is not there is empty, and looking does not make it. One that is named has to
# be there.
export HONE_LOG=here.db
says "0 records, 0 texts, 0 plans in here.db" log ls
says "0 records, 0 texts, 0 plans in here.db" log verify
says "0 records" log gc
fails 3 "there is no log 'here.db'" log show 1
for command in ls verify "verify --repair" gc "show 1"; do
  # shellcheck disable=SC2086
  fails 3 "log 'named.db'" log $command --log named.db
done
fails 3 "there is no log 'named.db'" run zoo:mlp,size=tiny --cache none --log named.db
fails 3 "there is no log 'named.db'" explain zoo:mlp,size=tiny --log named.db
fails 3 "there is no log 'here.db'" log export --log here.db
fails 3 "cannot" log import none.jsonl --log here.db
fails 3 "there is no log 'none.db'" log merge none.db --log here.db
[[ ! -e here.db && ! -e named.db ]]
unset HONE_LOG

# Which one it is.
HONE_LOG=$PWD/env.db says "in $PWD/env.db" log ls
HONE_LOG=$PWD/env.db fails 3 "there is no log 'other.db'" log ls --log other.db
HONE_LOG='' XDG_DATA_HOME=$PWD/xdg says "in $PWD/xdg/hone/log.db" log ls
HONE_LOG='' XDG_DATA_HOME=relative HOME=$PWD/home says "$PWD/home/.local/share/hone/log.db" log ls
HONE_LOG='' XDG_DATA_HOME='' HOME='' fails 2 "name a file with --log" log ls

# Lines come in, and go out as they were. Its folder is made.
line() { # line NUMBER SECONDS
  printf '{"record":{"kind":"kernel","subject":"0x00000000000000aa","choice":"{order = [%s]}",' "$1"
  printf '"code":"0x000000000000000%s","target":"0xfedcba9876543210","conditions":"threads=1",' "$1"
  printf '"outcome":"measured","detail":"","seconds":[%s],"version":"0.%s.0",' "$2" "$1"
  printf '"time":170000000%s,"noise":0.01}}\n' "$1"
}
crashed='s/"measured","detail":"","seconds":.5./"crashed","detail":"SIGSEGV","seconds":[]/'
kernel='"kind":"kernel","hash":"0x00000000000000aa"'
graph='graph @g(%x: f32[4]) -> f32[4] {\n}'
target='"kind":"target","hash":"0xfedcba9876543210"'
plan='"graph":"0x00000000000000bb","target":"0xfedcba9876543210","threads":2'
gain='"gain":1.25,"low":1.125,"high":1.5,"version":"0.1.0","time":1700000000'
{
  line 1 "2e-06,3e-06,2.5e-06"
  line 2 "1e-06"
  line 3 "9e-06"
  line 4 5 | sed "$crashed"
  printf '%s\n' "{\"text\":{$kernel,\"text\":\"kernel {\n}\n$graph\"}}"
  printf '%s\n' "{\"text\":{$target,\"text\":\"target \\\"mine\\\" {\n}\n\"}}"
  printf '%s\n' "{\"plan\":{$plan,\"plan\":\"plan @m {\n}\n\",$gain}}"
} >given.jsonl
says "added 4 records, 2 texts, 1 plans to a/b/log.db; it had 0, 0, 0 of them" \
  log import given.jsonl --log a/b/log.db
says "added 0 records, 0 texts, 0 plans to a/b/log.db; it had 4, 2, 1 of them" \
  log import given.jsonl --log a/b/log.db
export HONE_LOG=$PWD/a/b/log.db
"$HONE" log export >lines
diff given.jsonl lines
says "wrote lines" log export -o lines
diff given.jsonl lines
"$HONE" log import - --log second.db <lines 2>err
"$HONE" log export --log second.db | diff given.jsonl -
[[ $("$HONE" log export --by 0.2.0 2>err | wc -l) == 3 ]]
says "wrote arrays.npz" log export -o arrays.npz
[[ $(head -c 2 arrays.npz) == PK ]]
[[ -z $(compgen -G '*.tmp-*') ]]

# Looking.
says "4 records, 2 texts, 1 plans" log ls
grep -qx "target 0xfedcba9876543210 mine" out
grep -qx "threads=1" out
grep -qE "^kernel  0x00000000000000aa +4 +4 +1 +1(.0+)? us  @g\(%x: f32\[4\]\) -> f32\[4\]$" out ||
  { cat out; exit 1; }
[[ $(awk '{ print length }' out | sort -n | tail -1) -le 100 ]]
says "4 records" log ls --kind graph
[[ ! -s out ]]
"$HONE" log ls --json - >data 2>err
grep -q '"best_seconds": 1e-06' data
says "4 records" log ls --json data2
diff data data2
"$HONE" log show 1 >out
grep -q "median     2.50 us of 3 samples" out || { cat out; exit 1; }
grep -qx "{order = \[1\]}" out
"$HONE" log show 4 | grep -q "detail     SIGSEGV"
"$HONE" log show 0x00000000000000aa >out
grep -q "^graph @g" out && [[ $(grep -c "{order = " out) == 4 ]]
"$HONE" log show 0x00000000000000aa --limit 2 | grep -q "and 2 more"
"$HONE" log show 0x00000000000000bb | grep -q "1.250 times as fast as the default, 1.125 to"
"$HONE" log show 0xfedcba9876543210 | grep -q 'target "mine"'
fails 3 "has no record 5" log show 5
fails 3 "knows no 0x0000000000000001" log show 0x0000000000000001
fails 2 "neither the number of a record nor a hash" log show 0x1
fails 2 "--subject: 'aa'" log ls --subject aa

# Bad lines say where they are.
{ line 5 1; echo; echo '{"record":'; } >bad.jsonl
fails 3 "JSON" log import bad.jsonl --log third.db
grep -qF "bad.jsonl:3" err
fails 2 "needs one of" log

# Merging leaves the other log as it is.
says "added 4 records" log merge second.db --log merged.db
says "added 0 records" log merge second.db a/b/log.db --log merged.db
"$HONE" log export --log merged.db | diff given.jsonl -

# Removing.
says "would remove 1 records and 0 texts" log gc --by 0.4.0 --dry-run
says "removed 1 records and 0 texts, kept 3 records" log gc --by 0.4.0
says "removed 3 records and 1 texts, kept 0 records" log gc --days 30
says "removed 4 records" log gc --limit 0 --log merged.db

# Damage is told, and what is good is kept.
cp second.db damaged.db
size=$(stat -c %s damaged.db)
head -c 4096 /dev/urandom | dd of=damaged.db bs=4096 seek=1 conv=notrunc 2>/dev/null
[[ $(stat -c %s damaged.db) == "$size" ]]
cp damaged.db copy.db
fails 3 "is damaged" log ls --log damaged.db
grep -qF "hone log verify --repair" err
cmp damaged.db copy.db
says "the log 'damaged.db' was damaged" log verify --repair --log damaged.db
cmp damaged.db.damaged copy.db
says "are good" log verify --repair --log damaged.db
[[ ! -e damaged.db.damaged-2 ]]
fails 3 "'given.jsonl'" log ls --log given.jsonl
fails 3 "'given.jsonl'" log verify --repair --log given.jsonl
fails 3 "is a folder" log import given.jsonl --log a

# A newer format stays as it is.
cp second.db newer.db
printf '\2' | dd of=newer.db bs=1 seek=63 conv=notrunc 2>/dev/null
cp newer.db copy.db
for command in ls verify gc "import given.jsonl"; do
  # shellcheck disable=SC2086
  fails 4 "has format 2, and this version of hone knows 1" log $command --log newer.db
done
cmp newer.db copy.db

# A log that cannot be written is an error, and loses nothing.
long() { for ((i = 0; i < 2000; ++i)); do line 1 "$i"; done; }
long >long.jsonl
exits() { # exits CODE WORDS: what the last command did
  [[ $code == "$1" ]] && grep -q -- "$2" err && return
  echo "exit code $code"
  cat err
  return 1
}
code=0
(ulimit -f 200 && exec "$HONE" log import long.jsonl --log second.db) >out 2>err || code=$?
exits 5 "cannot write the log"
"$HONE" log export --log second.db >out
diff <(head -n 4 given.jsonl) <(head -n 4 out)
says "are good" log verify --log second.db
fails 3 "/proc/none" log import given.jsonl --log /proc/none/log.db

# A folder and a log that are read-only are read, and refuse records.
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
  chmod 755 .
  mkdir -m 755 fixed
  "$HONE" log import given.jsonl --log fixed/log.db 2>err
  other_user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
  if other_user test -x "$HONE"; then
    other_user "$HONE" log export --log "$PWD/fixed/log.db" | diff given.jsonl -
    code=0
    other_user "$HONE" log import - --log "$PWD/fixed/log.db" <given.jsonl >out 2>err || code=$?
    exits 3 "cannot use the log"
  fi
fi
