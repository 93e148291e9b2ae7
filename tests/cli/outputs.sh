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
