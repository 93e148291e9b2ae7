# Open sizes come from --dim, from --shape, from inputs, or are the smallest; which, is said.
"$HONE" run zoo:mlp,symbolic-batch >/dev/null 2>err
grep -q "^N=1 (the smallest" err
"$HONE" run zoo:mlp,symbolic-batch --dim N=3 | grep >/dev/null "f32\[3, 10\]"
"$HONE" run zoo:mlp,symbolic-batch --shape x=5x784 | grep >/dev/null "f32\[5, 10\]"
"$HONE" run zoo:mlp,symbolic-batch --input x=2x784xf32=1 | grep >/dev/null "f32\[2, 10\]"
"$HONE" inspect zoo:mlp,symbolic-batch --dim N=4 >out
grep -Eq "^symbol +N in 1\.\." out
grep -q "at N = 4" out
# A size that no shape tells is taken from --dim.
cat >sum.hone <<'END'
graph @sum(%x: f32[N + M]) where N in 1..8, M in 1..8 {
  %y = neg %x
  return %y
}
END
"$HONE" run sum.hone --dim N=1 --dim M=2 | grep >/dev/null "f32\[3\]"
"$HONE" run sum.hone --dim N=1 --dim M=2 --input x=3xf32=1 | grep >/dev/null "f32\[3\]"
"$HONE" run sum.hone | grep >/dev/null "f32\[2\]"
"$HONE" run sum.hone --shape x=5 2>err && exit 1
grep -q "size 5 is not" err
