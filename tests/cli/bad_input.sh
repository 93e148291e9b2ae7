# What is wrong with an input is said with its name and both numbers.
expect() { # expect WORDS ARGS...
  local words=$1
  shift
  "$HONE" run zoo:mlp,symbolic-batch "$@" >/dev/null 2>err && { echo "accepted: $*"; return 1; }
  grep -qF -- "$words" err || { echo "no '$words' in:"; cat err; return 1; }
}
expect "the graph has no input 'y'" --input y=f32=1
expect "axis 1: size 78 is not 784" --input x=3x78xf32=1
expect "rank 1 instead of 2" --input x=784xf32=1
expect "did you mean 'f32'?" --input x=1x784xf23=1
expect "input 'x' holds f32, the literal holds i32" --input x=1x784xi32=1
expect "has 784 elements, given are 2" --input x=1x784xf32=1,2
expect "'one' is not a number" --input x=1x784xf32=one
expect "above the limit of 2^40" --input x=9999999999x784xf32=1
expect "'-1' in '-1x784xf32' is no dim" --input x=-1x784xf32=1
expect "nope.npy" --input x=@nope.npy
expect "N = 0 is outside of 1.." --dim N=0
expect "it has N" --dim M=3
expect "size 3 is not 4" --dim N=4 --shape x=3x784
expect "has not the form NAME=VALUE" --shape x
expect "is given twice" --input x=1x784xf32=1 --input x=1x784xf32=1
{
  printf '\x93NUMPY\x01\x00\x47\x00'
  printf '{"descr": "<f4", "fortran_order": False, "shape": (4611686018427387904, 4)}'
} >bad.npy
expect "bad.npy" --input x=@bad.npy
