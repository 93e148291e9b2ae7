# Literals, .npy and .npz files and seeds all lead to inputs; one number stands for all elements.
run() { "$HONE" run zoo:mlp,size=tiny "$@" 2>err; }
shape=$("$HONE" inspect zoo:mlp,size=tiny | sed -nE 's/^inputs +x +f32\[(.*)\]$/\1/p')
dims=${shape//, /x}
run --input "x=${dims}xf32=0.5" -o a.npy >a
run --input "x= ${dims}xf32 = 0.5" >b
cmp a b
# An output file of one run is an input file of the next.
"$HONE" zoo export mlp --size tiny -o mlp.hone 2>/dev/null
"$HONE" run mlp.hone --seed 7 >c 2>err
grep -q "random input x, seed 7" err
run --seed 7 | cmp - c
run --input x=@a.npy >/dev/null && exit 1
grep -q "input 'x' is f32" err
run --seed 8 | cmp -s - c && exit 1
exit 0
