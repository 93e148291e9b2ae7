# A labelled task of hone's own: digits are drawn, a network learns them, each level of precision
# keeps or loses right answers, and training brings them back.
source "$ROOT/tests/cli/expect.bash"

says "2000 images to learn from, 2000 to test, 16 runs of 128" zoo digits --samples 2000
"$HONE" zoo digits -o again --samples 2000 2>err
cmp digits/train.npz again/train.npz # the seed decides all bits
cmp digits/runs/03.npz again/runs/03.npz
"$HONE" zoo digits -o other --samples 2000 --seed 1 2>err
never cmp -s digits/train.npz other/train.npz

cat >net.train <<'END'
data digits/train.npz
validation digits/test.npz
input image
target label
loss cross-entropy
layer linear 64
layer relu
layer linear 32
layer relu
layer linear 10
batch 50
rate 0.003
epochs 8
END
says "epoch 8: " train net.train
accuracy() { sed -nE "s/.*$1.*, accuracy ([0-9.]+).*/\1/p" err | tail -1; }
before=$(accuracy "epoch 8: ")
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
at_least "$before" 0.75

# Right answers at each level, on 512 images that calibration did not see. Open sizes stay open.
right() { sed -nE "s/^unseen .*right answers ([0-9.]+) % \(f32 ([0-9.]+) %\)$/$1/p" out; }
for to in bf16 int8 w8 w4 w2; do
  hone quantize net/model.hone --dim N=128 --data digits/runs --labels label --to $to \
    --drop 60% --trials 0 -o $to.hone >out 2>err || { cat err; exit 1; }
  least=$(awk -v f32="$(right '\2')" -v to=$to 'BEGIN { print to == "w2" ? f32 / 2 : f32 - 10 }')
  at_least "$(right '\1')" "$least"
  "$HONE" inspect $to.hone >out
  contains 'f32\[N, 256\]'
done
"$HONE" check int8.hone --dim N=3 --cache none >out 2>err || { cat out err; exit 1; }

# A network whose weights and data are rounded trains: what w2 loses comes back, in w2.
again() { # again MODEL FOLDER: trains it on
  sed "/^layer/d; s|^rate.*|rate 0.001|; s|^epochs.*|epochs 6|" net.train >"$2.train"
  echo "model $1" >>"$2.train"
  says "before: validation" train "$2.train"
}
again w2.hone w2
lost=$(accuracy "before: ") back=$(accuracy "epoch 6: ")
at_least "$back" "$lost"
at_least "$back" 0.65
grep -q "i2\[" w2/model.hone && grep -q "f32\[N, 256\]" w2/model.hone
"$HONE" check w2/model.hone --dim N=3 --cache none >out 2>err || { cat out err; exit 1; }
says "goes on after step" train w2.train
again int8.hone int8
lost=$(accuracy "before: ") back=$(accuracy "epoch 6: ")
at_least "$back" "$(awk -v a="$lost" 'BEGIN { print a - 0.02 }')"
grep -q "i8\[" int8/model.hone && grep -q "= quantize" int8/model.hone

# Files of ONNX go on, too; their products of few bits are MatMulNBits.
"$HONE" convert w2/model.hone -o w2.onnx 2>err
sed 's|^epochs.*|epochs 1|; s|^model.*|model w2.onnx|' w2.train >onnx.train
says "epoch 1: " train onnx.train

# A model that cannot be trained says why.
refuses() { # refuses CODE WORDS EXPRESSION: of sed, on a declaration with a model
  sed "$3" w2.train >bad.train
  fails "$1" "$2" train bad.train
}
refuses 3 "bad.train, line 9" "s|^model.*|model nosuch.hone|"
echo 'graph @two(%x: f32[N, 4], %y: f32[N, 4]) -> f32[N, 4] where N in 1..9 {
  %z = add %x, %y return %z }' >two.hone
refuses 3 "one input" "s|^model.*|model two.hone|"
echo 'graph @none(%x: f32[N, 256]) -> f32[N, 256] where N in 1..9 {
  %z = exp %x return %z }' >none.hone
refuses 3 "no weights" "s|^model.*|model none.hone|"
refuses 3 "layers, and a model" "s|^batch.*|layer relu|"
