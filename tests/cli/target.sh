# A machine can be listed, measured, written, read back, and restricted.
source "$ROOT/tests/cli/expect.bash"
HONE_CUDA_LIBRARY=$PWD/none.so "$HONE" target list >list 2>err
grep -q "^no GPU is listed: there is no NVIDIA driver: " err
grep -Eq "^sm_90 +sm_90 +132 " list
"$HONE" target show sm_80 >card
"$HONE" target show card | cmp - card
grep -q "gpu = sm_80, 64 warps" card
grep -Eq "^target +level +cores" list
grep -q "x86-64-v2" list
"$HONE" target show >host
"$HONE" target show host | cmp - host
grep -q "measured = false" host
"$HONE" target show host --isa x86-64-v2 >v2
grep -q "isa = x86-64-v2$" v2
"$HONE" target show v2 | cmp - v2

"$HONE" target probe --seconds 0.1 --progress plain -o my.target >out 2>err
[[ ! -s out ]]
grep -q "measurements in" err
grep -q "wrote my.target" err
grep -q "measured = true" my.target
"$HONE" target show my.target | cmp - my.target
"$HONE" target show my.target --isa x86-64-v2 | grep -q "measured = false"
"$HONE" target probe --seconds 0 --isa x86-64-v2 2>/dev/null | grep -q "isa = x86-64-v2$"

sed 's/cores = .*/cores = none/' host >bad.target
fails 3 "'none' is not an integer (bad.target:4:11)" target show bad.target
fails 3 "missing.target" target show missing.target
fails 5 "limit of 65536" target show /dev/zero
fails 2 "avx1024" target show --isa avx1024
fails 2 "0 to 60" target probe --seconds 61
fails 2 "no folder" target probe -o missing/my.target
fails 2 "needs one of show, list, prices, probe" target

# The coefficients of the price: printed, edited, given to what compiles, refused by name.
"$HONE" target prices my.target -o my.prices 2>err
grep -q "wrote my.prices" err
grep -Fxq "prices on \"$(sed -n 's/^target "\(.*\)" {$/\1/p' my.target)\" {" my.prices
plan() { "$HONE" compile zoo:mlp,size=tiny --target my.target --emit plan "$@" 2>/dev/null; }
plan --prices my.prices | cmp - <(plan)
refused() { # refused WORDS SED: the edited text is refused in these words
  sed "$2" my.prices >bad.prices
  fails 3 "$1" compile zoo:mlp,size=tiny --target my.target --prices bad.prices
}
refused "the coefficient 'trip' is missing" '/ trip =/d'
refused "there is no coefficient 'strip'" 's/ trip =/ strip =/'
refused "there are sum_latency, trip, spill" 's/ trip =/ strip =/'
refused "not a number from 0 to" 's/trip = 2/trip = -2/'
refused "not a number from 0 to" 's/trip = 2/trip = inf/'
refused "the prices are for the target" 's/^prices on .* {/prices on "other" {/'
