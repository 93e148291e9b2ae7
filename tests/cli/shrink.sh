# Models whose sizes are divided compute with native code what they compute with the reference.
source "$ROOT/tests/share.bash"

"$HONE" shrink zoo:bert_base,size=tiny --to 1e5 -o small.hone >out
grep -q "^operations " out
"$HONE" check small.hone >out
"$HONE" shrink zoo:resnet50,size=tiny --to 1e5 -o - >text 2>out
grep -q "^graph @" text && grep -q "operations" out
"$HONE" shrink zoo:mlp,batch=8 --divide x:0=4 -o small.onnx >out
"$HONE" inspect small.onnx | grep -q "f32\[2, 784\]"
"$HONE" shrink zoo:mlp,size=tiny --to 1 --keep width --keep batch >out 2>err
grep -q "no size changes" out && grep -q "no other size" err

fails() { # fails CODE TEXT ARGUMENT...
  local code=0
  "$HONE" shrink "${@:3}" >out 2>err || code=$?
  [[ $code == "$1" ]] && grep -q -- "$2" err || { echo "$*: $code"; cat err; exit 1; }
}
fails 2 "'x:0'" zoo:mlp --divide x:0
fails 2 "at least 1" zoo:mlp --divide x:0=0
fails 2 "no input 'z'" zoo:mlp --divide z:0=2
fails 4 "x:1" zoo:mlp --divide x:1=5
fails 2 "no format" zoo:mlp -o small.foo

# Real models: each is divided, and agrees. Two lack parts, and are refused by name when they run.
data=$ROOT/../shared/data/hlo/modules.tar.xz
[[ -f $data ]] || { echo "skipped the rest: there is no $data"; exit 0; }
tar -xf "$data"
number=0
while read -r module; do
  in_share $((number++)) 18 || continue
  least=2 wanted=0
  [[ $module != */resnet50/training/* ]] || least=1 # pads of its images fix their sizes
  [[ $module != */gpt_j_6b/* && $module != */hlo_llama3_8b_cp* ]] || wanted=4
  "$HONE" shrink "$module" --to 1e7 --least $least -o small.hone >out 2>err ||
    { echo "$module"; cat err; exit 1; }
  code=0 how=check
  # Rounding decides about gradients of such a small vit: fp32 is as far from exact as native code.
  [[ $module != */vit/training/* ]] || how=run
  "$HONE" $how small.hone --cache none >out 2>err || code=$?
  [[ $code == "$wanted" ]] || { echo "$module: $code"; cat out err; exit 1; }
done < <(find . -name '*.before_optimizations.txt' -o -name '*.hlo' | sort)
