# Open sizes come from --dim, from --shape, from inputs, or are the smallest; which, is said.
"$HONE" run zoo:mlp,symbolic-batch >/dev/null 2>err
grep -q "^N=1 (the smallest" err
"$HONE" run zoo:mlp,symbolic-batch --dim N=3 | grep -q "f32\[3, 10\]"
"$HONE" run zoo:mlp,symbolic-batch --shape x=5x784 | grep -q "f32\[5, 10\]"
"$HONE" run zoo:mlp,symbolic-batch --input x=2x784xf32=1 | grep -q "f32\[2, 10\]"
"$HONE" inspect zoo:mlp,symbolic-batch --dim N=4 >out
grep -Eq "^symbol +N in 1\.\." out
grep -q "at N = 4" out
