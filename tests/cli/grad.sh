# hone grad makes training steps that the other commands take.
source "$ROOT/tests/cli/expect.bash"
source "$ROOT/tests/share.bash"

says "wrote step.state.npz: 20 tensors" grad zoo:mlp,size=tiny --loss cross-entropy \
  --optimizer adam -o step.hone
"$HONE" check step.hone --inputs step.state.npz --seed 3 >out
"$HONE" bench step.hone --inputs step.state.npz --donate --seconds 0.01 >out
says "wrote frozen.state.npz" grad zoo:mlp,size=tiny --freeze 'hidden/*' --optimizer momentum \
  -o frozen.hone
"$HONE" inspect frozen.hone >out
contains 'output/weight.velocity'
never grep -q 'hidden/0/weight.velocity' out
"$HONE" grad zoo:mlp,size=tiny --optimizer none -o - >out
contains 'hidden/0/weight.grad'

# A step in less memory computes the same.
says "ops are computed again" grad zoo:resnet18,size=tiny --memory 80% \
  -o small.hone
grep -q 'transpose .*{permutation = \[0, 1, 2, 3\]}' small.hone
"$HONE" check small.hone --inputs small.state.npz --seed 3 >out
fails 5 "the least that was found is" grad zoo:mlp,size=tiny --memory 1 -o a.hone
fails 2 "'lots'" grad zoo:mlp,size=tiny --memory lots -o a.hone

# Native code of the gradients of all models is as accurate as that of models.
number=0
for model in $("$HONE" zoo list | awk 'NR > 1 { print $1 }'); do
  in_share "$((number++))" 8 || continue
  "$HONE" grad "zoo:$model,size=tiny" --optimizer none -o zoo.hone 2>err ||
    { echo "$model:"; cat err; exit 1; }
  "$HONE" check zoo.hone --inputs zoo.state.npz >out 2>err ||
    { echo "$model:"; cat out err; exit 1; }
done

fails 2 "there is no loss 'hinge'" grad zoo:mlp,size=tiny --loss hinge -o a.hone
fails 3 "must be one real number" grad zoo:mlp,size=tiny --loss logits -o a.hone
fails 2 "no weight is called 'nothing'" grad zoo:mlp,size=tiny --freeze nothing -o a.hone
fails 2 "sgd" grad zoo:mlp,size=tiny --optimizer newton -o a.hone
fails 2 "needs --output" grad zoo:mlp,size=tiny
cat >rounds.hone <<'END'
graph @rounds(%x: f32[3]) {
  %w = constant [1, 2, 3] : f32[3]
  %p = mul %x, %w
  %r = floor %p
  return %r
}
END
fails 3 "no weights to train" grad rounds.hone -o a.hone
[[ ! -e a.hone && ! -e a.state.npz ]]
