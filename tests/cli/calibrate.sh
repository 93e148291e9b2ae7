# Prices are fitted in a short time, kept for this target, used and dropped.
source "$ROOT/tests/cli/expect.bash"
export HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
fails 2 "not a time" calibrate --budget soon
fails 2 "not a time" calibrate --budget 0
fails 2 "avx1024" calibrate --isa avx1024
fails 2 "no folder" calibrate -o missing/my.prices
HONE_PRICES='' XDG_DATA_HOME='' HOME='' fails 2 "name a file with -o" calibrate
HONE_PRICES=/proc/none fails 3 "prices cannot be kept" calibrate
HONE_PRICES=/proc/none fails 3 "-o a file" calibrate
fails 3 "/proc/none" calibrate --log /proc/none/log.db
echo "this is no log" >text.db
fails 3 "'text.db'" calibrate --log text.db
[[ ! -e prices ]]

"$HONE" calibrate --budget 1s -o my.prices >out 2>err
grep -q "^fitted to" out
grep -q "^held out" out
grep -q "wrote my.prices" err
[[ ! -e prices ]]
plan() { "$HONE" compile zoo:mlp,size=tiny --no-log --emit plan "$@"; }
plan --prices my.prices >/dev/null 2>err
never grep -q "fitted" err

# Its measurements are known to the next one, which may be for other code.
"$HONE" calibrate --budget 1s >out 2>err
grep -q " known from the log" out
never grep -q ", 0 known from the log" out
# Whole models decide: a second is too short to race them.
grep -qE "^the fitted prices are (not )?kept: |prices stay" out err
if [[ -e $(echo prices/*.prices) ]]; then
  grep -q "^the fitted prices are kept" out
  grep -q "prices; commands that plan for this target use it from now on" err
else
  grep -q "prices stay" err
fi

# A file that was kept counts. It lies beside the data set of the same target.
"$HONE" train cost --budget 0.001 >out 2>err && exit 1
file=$(echo "$PWD"/prices/*.set)
file=${file%.set}.prices
cp my.prices "$file"
plan >fitted 2>err
grep -q "prices fitted to this target, $file" err
plan --prices default >default 2>err
never grep -q "fitted" err

# A file that is damaged or of another target is refused, and the defaults count.
cp "$file" good
for edit in 's/ trip =/ strip =/' 's/^prices on .* {/prices on "other" {/' 's/}//' '1d'; do
  sed "$edit" good >"$file"
  plan >out 2>err
  grep -q "fitted prices are not used: " err
  grep -q "'hone calibrate' writes the file again" err
  cmp out default
done
