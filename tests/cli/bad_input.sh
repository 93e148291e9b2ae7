# An error of an input is told with its name and both numbers, and has its exit code.
check() { # check CODE WORDS ARGS...
  local wanted=$1 words=$2 code=0
  shift 2
  "$HONE" "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || { echo "hone $*: exit code $code, not $wanted"; cat err; return 1; }
  [[ ! -s out ]] || { echo "hone $*: a failure wrote to stdout"; return 1; }
  grep -qF -- "$words" err || { echo "hone $*: no '$words' in:"; cat err; return 1; }
}
expect() { # expect CODE WORDS ARGS...
  local code=$1 words=$2
  shift 2
  check "$code" "$words" run zoo:mlp,symbolic-batch "$@"
}
expect 2 "the graph has no input 'y'" --input y=f32=1
expect 2 "axis 1: size 78 is not 784" --input x=3x78xf32=1
expect 2 "rank 1 instead of 2" --input x=784xf32=1
expect 2 "did you mean 'f32'?" --input x=1x784xf23=1
expect 3 "input 'x' holds f32, the literal holds i32" --input x=1x784xi32=1
expect 2 "784 elements" --input x=1x784xf32=1,2
expect 2 "'one' is not a number" --input x=1x784xf32=one
expect 2 "above the limit of 2^40" --input x=9999999999x784xf32=1
expect 2 "'-1' in '-1x784xf32'" --input x=-1x784xf32=1
expect 3 "nope.npy" --input x=@nope.npy
expect 2 "N = 0 is outside of 1.." --dim N=0
expect 2 "it has N" --dim M=3
expect 2 "size 3 is not 4" --dim N=4 --shape x=3x784
expect 2 "has not the form NAME=VALUE" --shape x
expect 2 "is given twice" --input x=1x784xf32=1 --input x=1x784xf32=1
{
  printf '\x93NUMPY\x01\x00\x47\x00'
  printf '{"descr": "<f4", "fortran_order": False, "shape": (4611686018427387904, 4)}'
} >bad.npy
expect 3 "bad.npy" --input x=@bad.npy

# A forgotten sign, comma or name.
expect 2 "to read a file, write x=@y.npy" --input x=y.npy
expect 2 "to read a file, write NAME=@y.npy" --input y.npy
check 2 "the list of passes ends in a comma" opt zoo:mlp --pass cse,
check 2 "'zoo:mlp,' ends in a comma" run zoo:mlp,
check 2 "'hone zoo list' shows the models" run zoo:bogus
check 2 "'hone zoo list' shows the models" zoo export bogus
check 2 "did you mean 'resnet18'?" zoo export resnet81
check 2 "the name of a zoo model is missing" run zoo:

# Long texts are cut, long lists too.
long=$(printf 'y%.0s' {1..5000})
expect 2 "yyy...'" --input "$long=f32=1"
[[ $(wc -c <err) -lt 300 ]]
{
  printf 'graph @many(%%a0: f32[]'
  printf ', %%a%s: f32[]' {1..9}
  printf ') {\n  return %%a0\n}\n'
} >many.hone
check 2 "it has a0, a1, a2, a3, a4 and 5 more" run many.hone --input zzzzzz=f32=1

# Names cannot command the terminal.
cat >escape.hone <<'END'
graph @"\x1b[31m"(%"\x1b[2J\n": f32[2]) {
  %"\x1b]0;x\x07" = neg %"\x1b[2J\n"
  return %"\x1b]0;x\x07"
}
END
"$HONE" inspect escape.hone >said 2>&1
"$HONE" run escape.hone >>said 2>&1
"$HONE" run escape.hone -o files/ >>said 2>&1
"$HONE" run escape.hone --input y=f32=1 >>said 2>&1 && exit 1
grep -qF '\x1b[2J\n' said
if LC_ALL=C grep -q '[[:cntrl:]]' said; then
  cat -v said
  exit 1
fi
[[ $(ls files) == "__0_x_.npy" ]]

# Weights that are missing or broken: which file, and who asked for it.
"$HONE" zoo export mlp --size tiny -o mlp.hone 2>/dev/null
echo nonsense >mlp.npz
check 3 "mlp.npz" run mlp.hone
grep -qF "mlp.hone" err
rm mlp.npz
check 3 "mlp.npz" run mlp.hone
grep -qF "mlp.hone" err
