# A first run on quick code: the same outputs, and the cache gets the real code alone.
source "$ROOT/tests/cli/expect.bash"
run() { "$HONE" run zoo:mlp,size=tiny --no-log --cache made "$@" >out 2>err; }
count() { # count WORDS: entries of the cache
  "$HONE" cache ls --cache made 2>/dev/null | grep -cF -- "$1" || true
}

run -o real
[[ ! $(<err) =~ "quick code" ]]
kernels=$(count "kernel ")
rm -r made
run --quick-start always -o quick
grep -Eq "ran on quick code of $kernels kernels; the code for later runs was made in" err
cmp real/*.npy quick/*.npy
[[ $(count "kernel ") == "$kernels" && $(count "code @mlp") == 1 ]]
# The second start has all that it needs.
run --quick-start always -o again
[[ ! $(<err) =~ "quick code" ]]
cmp real/*.npy again/*.npy
# Nobody would find the real code.
"$HONE" run zoo:mlp,size=tiny --no-log --cache none --quick-start always -o none >out 2>err
grep -q "ran on quick code of $kernels kernels (" err
cmp real/*.npy none/*.npy
# Little code is compiled at once.
rm -r made
run --quick-start auto
[[ ! $(<err) =~ "quick code" ]]

fails 2 "--trace" run zoo:mlp,size=tiny --quick-start always --trace trace.json
fails 2 "--quick-start" run zoo:mlp,size=tiny --quick-start sometimes
fails 2 "--quick-start" run zoo:mlp,size=tiny --backend reference --quick-start always
fails 2 "--quick-start" run zoo:mlp,size=tiny --devices 2 --quick-start always
"$HONE" compile zoo:mlp,size=tiny -o mlp.honec >out 2>err
fails 2 "--quick-start" run mlp.honec --quick-start always
