# A pointer of Git LFS is told from a damaged file, whatever the file should be.
source "$ROOT/tests/cli/expect.bash"

pointer='version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 13631488'
for name in model.onnx model.hone model.honec model; do
  echo "$pointer" >"$name"
  fails 3 "$name' is a Git LFS pointer" inspect "$name"
  fails 3 "git lfs pull" run "$name"
done
for name in x.npy x.npz x.pb; do
  echo "$pointer" >"$name"
  fails 3 "$name' is a Git LFS pointer" run zoo:mlp,size=tiny --input "x=@$name"
done
