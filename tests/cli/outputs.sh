# -o writes a .npy, a .npz or a folder; what cannot be written is refused before the work.
"$HONE" run zoo:gpt2,size=tiny -o all.npz >/dev/null 2>&1
"$HONE" run zoo:gpt2,size=tiny --expect all.npz >out 2>/dev/null
[[ $(grep -c "^ok " out) == 5 ]]
"$HONE" run zoo:gpt2,size=tiny -o folder >/dev/null 2>&1
[[ -s folder/logits.npy && -s folder/layer.0.key.npy ]]
"$HONE" run zoo:gpt2,size=tiny --expect folder/logits.npy >out 2>err
grep -q "4 of 5 outputs were not compared" err
for path in one.npy /nowhere/x.npz all.npz/x.npz; do
  "$HONE" run zoo:gpt2,size=tiny -o "$path" >out 2>err && exit 1
  [[ ! -s out ]]
done
"$HONE" run zoo:gpt2,size=tiny -o out 2>err >/dev/null && exit 1
grep -q "out is not a folder" err
"$HONE" run zoo:mlp -o y.txt >out 2>err && exit 1
grep -q "no format '.txt'" err
# Each value has a file of its own, whatever it is called.
cat >alike.hone <<'END'
graph @alike(%x: f32[2]) {
  %"a.b" = neg %x
  %"a/b" = abs %x
  %"A/b" = exp %x
  %"../c" = add %x, %x
  return %"a.b", %"a/b", %"A/b", %"../c"
}
END
"$HONE" run alike.hone --input x=2xf32=-1,-2 -o alike.d/ >/dev/null 2>&1
[[ $(cd alike.d && LC_ALL=C ls | tr '\n' ' ') == "A.b_2.npy _...c.npy a.b.npy a.b_1.npy " ]]
"$HONE" run alike.hone --input x=@alike.d/a.b_1.npy --expect alike.d/a.b_1.npy >out 2>err && exit 1
grep -q "^BAD a.b against alike.d/a.b_1.npy" out
