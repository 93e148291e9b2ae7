# Layers of fewer bits: what is chosen, what is written, and what other runtimes make of it.
source "$ROOT/tests/cli/expect.bash"
hone() { "$HONE" quantize "$@"; }

model="zoo:mlp,size=tiny"
for to in w8 w4 w2 int8 bf16 f16; do
  hone "$model" --to $to --error 0.8 -o $to.onnx --json $to.json >out 2>err
  grep -q "random inputs" err
  contains "$to"
  contains "^unseen +error [0-9.e-]+"
  "$HONE" check $to.onnx --cache none >out 2>err || { cat out err; exit 1; }
done
"$HONE" convert "$model" -o f32.onnx 2>err
size() { stat -c %s "$1"; }
(($(size w8.onnx) < $(size f32.onnx) / 2 && $(size w4.onnx) < $(size w8.onnx)))
(($(size w2.onnx) < $(size w4.onnx)))
# Weights of few bits are products of ONNX Runtime; plain ops read them by the standard's.
for to in w8 w4 w2; do grep -q MatMulNBits $to.onnx; done
never grep -q MatMulNBits int8.onnx
hone "$model" --to w4 --error 0.3 --primitives -o plain.onnx >out 2>err
never grep -q MatMulNBits plain.onnx
"$HONE" check plain.onnx --cache none >out 2>err
(($(size bf16.onnx) < $(size f32.onnx) * 3 / 4))

# Text keeps what it has.
hone "$model" --to w4 --error 0.3 -o w4.hone >out 2>err
"$HONE" check w4.hone --cache none >out 2>err
hone "$model" --to w4 --error 0.3 -o - >text 2>out
grep -q "dequantize" text && grep -q "unseen" out

# Levels are chosen by time within an error. Large weights are read in less time with fewer bits,
# whatever the processor.
hone zoo:mlp --to auto --error 0.05 -o auto.onnx >out 2>err
contains "^%2 +(int8|w8|w4|bf16|f16) "
contains "^layers +[0-9.]+ us before, [0-9.]+ us after, by price$"
contains "^unseen +error 0.0[0-4]"
contains "^time +[0-9.]+ .s before, [0-9.]+ .s after, measured in turns: [0-9.]+x as fast$"
"$HONE" check auto.onnx --cache none >out 2>err

# Arrays of the user's: each file is a run, the last one is for the check.
mkdir samples
shape=$("$HONE" inspect "$model" | sed -nE 's/^inputs +x +(f32\[.*\])$/\1/p')
for seed in 1 2 3; do
  echo "graph @g(%x: $shape) -> $shape { %y = neg %x return %y }" >neg.hone
  "$HONE" run neg.hone --seed $seed -o samples/$seed.npy >/dev/null 2>err
done
hone "$model" --to int8 --error 0.3 --data samples >out 2>err
never grep -q "random" err
contains "int8"
cp out table

# A drop of answers, with labels and without.
mkdir labelled
python3 - <<'END'
import struct, zipfile

def npy(dims, code, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (code, dims)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data

for run in range(3):
    values = [((i * 37 + run * 11) % 101) / 50 - 1 for i in range(32)]
    with zipfile.ZipFile(f"labelled/{run}.npz", "w") as file:
        file.writestr("x.npy", npy((2, 16), "<f4", struct.pack("<32f", *values)))
        file.writestr("right.npy", npy((2,), "<i8", struct.pack("<2q", 0, 1)))
END
[[ $shape == "f32[2, 16]" ]]
hone "$model" --to w4 --drop 50% --data labelled --labels right --page page.html >out 2>err
contains "^unseen +error .*right answers [0-9.]+ % \(f32 [0-9.]+ %\)$"
contains "^front +.*error"
grep -q "<svg" page.html && grep -q "<td>w4</td>" page.html
never grep -q "<script" page.html
hone "$model" --to w8 --drop 0.5 --trials 0 >out 2>err
contains "equal best answers"
fails 2 "--drop" "$model" --drop 0.5% --error 0.1
fails 2 "from 0%" "$model" --drop many
fails 2 "--data" "$model" --labels right
fails 3 "'wrong'" "$model" --data labelled --labels wrong
fails 3 "want an integer for each" "$model" --data labelled --labels x

# Layers that stay, and why.
layer=$(sed -n 2p table | cut -d' ' -f1)
hone "$model" --to int8 --error 0.3 --keep "$layer" >out 2>err
contains "^$layer +f32 .*--keep"
fails 2 "'nosuch'" "$model" --to w8 --keep nosuch
fails 1 "the best is" "$model" --to w4 --error 1e-9
fails 2 "--error" "$model" --error 0
fails 2 "power of 2" "$model" --group 48
mkdir one
cp samples/1.npy one
fails 3 "at least 2" "$model" --data one
fails 3 "nowhere" "$model" --data nowhere
echo "graph @g(%x: f32[2]) -> f32[2] { %y = exp %x return %y }" >exp.hone
fails 4 "no products" exp.hone
mkdir bad
"$HONE" run exp.hone -o bad/1.npy >/dev/null 2>err
cp bad/1.npy bad/2.npy
fails 3 "bad/1.npy" "$model" --data bad
grep -qF "f32[2, 16]" err
echo "graph @g(%x: $shape) -> $shape { %y = log %x return %y }" >log.hone
"$HONE" run log.hone --input "x=${shape:4:-1}" -o bad/1.npy >/dev/null 2>err || true
"$HONE" run neg.hone -o bad/2.npy >/dev/null 2>err
"$HONE" run log.hone --seed 1 -o bad/1.npy >/dev/null 2>err
fails 3 "bad/1.npy" "$model" --data bad
grep -q "finite" err

# Compiling and tuning within an error take the same levels as writing, and say so.
hone() { "$HONE" "$@"; }
says "levels: 3 of 3 layers have fewer bits (3 w4); on unseen arrays error 0." \
  compile "$model" --to w4 --error 0.3 --no-measure --no-log --cache none -o small.honec
hone inspect small.honec >out
contains "^levels +3 of 3 layers have fewer bits \(3 w4\); on unseen arrays error 0\.[0-9]+, larg"
hone inspect small.honec --format json >out
contains '"levels": "3 of 3 layers'
hone check small.honec --model w4.hone >out 2>err || { cat out err; exit 1; }
says "3 of 3 layers" \
  compile "$model" --to w4 --error 0.3 --emit graph --no-log --cache none -o graph.hone
grep -q "^graph @" graph.hone
says "3 of 3 layers" \
  tune "$model" --to w8 --error 0.3 --budget 1s --cache none --no-log -o tuned.plan
fails 1 "the best is" compile "$model" --to w4 --error 1e-9 --no-log -o none.honec
fails 2 "--to chooses levels" compile "$model" --to w4 -o none.honec
fails 2 "one choice of sizes" compile "$model" --to w4 --error 0.3 --sizes n=1 -o none.honec
fails 2 "--plan" compile "$model" --to w4 --error 0.3 --plan tuned.plan -o none.honec
[[ ! -e none.honec ]]

# Multipliers of other hardware: exact ones, and some that cut low bits.
python3 - <<'END'
import struct

def npy(name, product):
    head = "{'descr': '<i4', 'fortran_order': False, 'shape': (256, 256), }"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    number = [i - 256 if i > 127 else i for i in range(256)]
    data = [product(a, b) for a in number for b in number]
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<65536i", *data))

npy("exact.npy", lambda a, b: a * b)
npy("cut.npy", lambda a, b: a * b >> 6 << 6)
END
hone target show >own.target
{
  sed '$d' own.target
  echo '  multiplier = "exact", signed, 0.4 mW, 700 um2, "exact.npy"'
  echo '  multiplier = "cut", signed, 0.1 mW, 300 um2, "cut.npy"'
  echo '}'
} >chip.target
hone quantize "$model" --target chip.target --error 0.5 -o chip.hone --json chip.json \
  >out 2>err || { cat out err; exit 1; }
contains "^energy +0.250 of that of exact products$"
contains "^unseen +error 0\."
[[ $(grep -c '"multiplier": "cut"' chip.json) == 3 ]]
hone check chip.hone --cache none >out 2>err || { cat out err; exit 1; }
fails 1 "exact products" quantize "$model" --target chip.target --error 1e-7
fails 2 "--page" quantize "$model" --target chip.target --page page.html
sed 's/cut.npy/x.npy/' chip.target >bad.target
cp samples/1.npy x.npy
fails 3 "i32[256, 256]" quantize "$model" --target bad.target
hone quantize "$model" --target chip.target --to w8 --error 0.3 >out 2>err
contains "w8"

# ONNX Runtime loads what was written, and agrees.
python=${HONE_PYTHON:-python3}
"$python" -c "import onnxruntime" 2>/dev/null ||
  { echo "skipped the rest: $python has no onnxruntime"; exit 0; }
"$HONE" run neg.hone --seed 5 -o x.npy >/dev/null 2>err
for to in w8 w4 w2 int8 f16; do
  "$HONE" run $to.onnx --input x=@x.npy -o $to.npy >/dev/null 2>err
  "$python" - $to <<'END'
import sys

import numpy as np
import onnxruntime

name = sys.argv[1]
session = onnxruntime.InferenceSession(name + ".onnx", providers=["CPUExecutionProvider"])
theirs = session.run(None, {session.get_inputs()[0].name: np.load("x.npy")})[0]
ours = np.load(name + ".npy")
error = np.sqrt(((ours - theirs) ** 2).mean() / (theirs**2).mean())
# Bytes: a sum of another order moves some numbers by a step of the grid.
limit = {"w8": 1e-5, "w4": 1e-5, "w2": 1e-5, "int8": 1e-2, "f16": 2e-3}[name]
assert error < limit, (name, error)
END
done
