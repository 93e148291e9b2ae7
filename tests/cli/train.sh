# hone train makes a network of a text and data, and goes on where it was ended.
source "$ROOT/tests/cli/expect.bash"

# Points in the plane, labelled by the sign of x y: no line parts them.
python3 - <<'END'
import io, random, struct, zipfile

def npy(kind, dims, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, dims)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data

def write(path, count, seed):
    random.seed(seed)
    points = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(count)]
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("at.npy", npy("<f4", "(%d, 2)" % count,
                                    b"".join(struct.pack("<ff", *p) for p in points)))
        file.writestr("side.npy", npy("<i8", "(%d,)" % count,
                                      b"".join(struct.pack("<q", x * y > 0) for x, y in points)))

write("points.npz", 640, 1)
write("others.npz", 200, 2)
END
cat >xor.train <<'END'
data points.npz  # in this folder
validation others.npz
input at
target side
loss cross-entropy
layer linear 24
layer relu
layer linear 2
rate 0.02
epochs 12
END
says "epoch 12: " train xor.train
contains '^best loss 0\.[012]'
cp xor/last.safetensors first
sed 's/^epochs.*/epochs 1/' xor.train >small.train
echo 'memory cheap' >>small.train
says "epoch 1: " train small.train
says "wrote xor/model.hone" train xor.train --anew -o xor
cmp xor/last.safetensors first # the same bits
says "step 240" train xor.train
"$HONE" inspect xor/model.hone >out
contains 'f32\[N, 2\]'
contains '\bat\b.*f32\[N, 2\]' # named as in the text
"$HONE" check xor/model.hone --dim N=7 >out

# Devices share the samples of a batch, and a checkpoint goes on on any number of them.
says "3 devices of 1 thread, which share the samples" train small.train -o shared --devices 3 \
  --threads 1
says "goes on after step 20" train xor.train -o shared --devices 2 --threads 1
contains '^best loss 0\.[012]'
HONE_CUDA_LIBRARY=$PWD/none fails 4 "there is no NVIDIA driver" train xor.train --device cuda:0
# A system schedules their sums, and any other one goes on from there.
says "2 devices of 1 thread" train small.train -o planned --devices 2 --threads 1 --system tree:1x2
says "goes on after step 20" train xor.train -o planned --devices 2 --threads 1 --system ring:2
contains '^best loss 0\.[012]'
fails 2 "'ring:3' has 3 devices" train small.train --devices 2 --system ring:3
fails 2 "needs --devices" train small.train --system ring:2

# A mesh divides the values of a step, weights too: on threads and on processes the numbers of one
# device, as far as another order of additions goes. A checkpoint resumes on any mesh.
says "epoch 1: " train small.train -o single --anew --threads 1
says "mesh x=2,y=2: 4 devices of 1 thread" train small.train -o meshed --mesh x=2,y=2 --shard auto \
  --threads 1
grep -q "^mesh x=2,y=2" meshed/step.shard
grep -q "a step takes .* on 4 devices" err
python3 "$ROOT/tests/cli/near_weights.py" single/last.safetensors meshed/last.safetensors 1e-3
says "epoch 1: " train small.train -o processes --mesh x=2,y=2 --shard meshed/step.shard \
  --transport shared --threads 1
cmp processes/last.safetensors meshed/last.safetensors # the plan fixes the bits
cp meshed/last.safetensors before
sed 's/^epochs.*/epochs 1/' xor.train >done.train
for mesh in "--mesh x=4 --shard auto" "--devices 2" "--mesh x=2 --shard at=[x,-]" ""; do
  # shellcheck disable=SC2086  # words
  says "goes on after step 20" train done.train -o meshed --threads 1 $mesh
  # No step was left to do: the weights are those that were written, bit for bit.
  python3 "$ROOT/tests/cli/near_weights.py" before meshed/last.safetensors 0
done
says "epoch 2: " train xor.train -o meshed --mesh x=4 --threads 1
fails 3 "mesh x=2,y=2 on 4 devices fits it" train small.train -o meshed --mesh x=4 \
  --shard meshed/../processes/step.shard
fails 5 "too much" train small.train -o never --mesh x=2 --memory 1KiB
# A sharding that fits is found, though prices alone would take more.
says "a step takes" train small.train -o fits --mesh x=2 --memory 7KiB
fails 2 "add --mesh" train small.train --devices 2 --memory 1GiB
fails 2 "add --mesh" train small.train --devices 2 --transport shared
fails 2 "--shard needs devices" train small.train --shard auto

# Stages compute a step: on threads and on processes the numbers of one device, as above. A
# checkpoint has whole tensors, and goes on in other plans and on one device.
says "2 stages, 4 micro-batches, " train small.train -o staged --pipeline 2 --micro-batches 4
grep -q "on 2 devices of .local:2" err
grep -q "^pipeline 4 micro-batches, " staged/step.pipeline
python3 "$ROOT/tests/cli/near_weights.py" single/last.safetensors staged/last.safetensors 1e-3
says "epoch 1: " train small.train -o passed --pipeline staged/step.pipeline --transport shared
cmp passed/last.safetensors staged/last.safetensors # the plan fixes the bits
says "on 4 devices of" train small.train -o wide --pipeline 2 --mesh x=2 --budget 2s
python3 "$ROOT/tests/cli/near_weights.py" single/last.safetensors wide/last.safetensors 1e-3
cp staged/last.safetensors before
for how in "--pipeline auto --system local:2 --micro-batches 2 --schedule gpipe" "--devices 2" \
  "--mesh x=2 --shard auto" ""; do
  # shellcheck disable=SC2086  # words
  says "goes on after step 20" train done.train -o staged $how
  python3 "$ROOT/tests/cli/near_weights.py" before staged/last.safetensors 0
done
says "epoch 2: " train xor.train -o staged --pipeline 2 --micro-batches 2
fails 2 "of --system" train small.train --pipeline 2 --devices 2
fails 2 "shard does not go with --pipeline" train small.train --pipeline 2 --shard auto
fails 2 "is a plan" train small.train --pipeline passed/step.pipeline --micro-batches 2
fails 2 "add --pipeline" train small.train --micro-batches 2
fails 2 "needs devices" train small.train --pipeline auto
fails 3 "none.pipeline" train small.train --pipeline none.pipeline
fails 5 "no pipeline keeps a device within 1.0 KiB" train small.train -o never --pipeline 2 \
  --memory 1KiB

# More epochs go on from there; another batch size would be another training.
sed -i 's/^epochs 12/epochs 14/' xor.train
says "epoch 14: " train xor.train
sed -i 's/^epochs 14/batch 20/' xor.train
fails 3 "'batch size' was 32" train xor.train

refuses() { # refuses CODE WORDS LINE: instead of the first line with the same first word
  sed "s|^${3%% *}.*|$3|" xor.train >bad.train
  fails "$1" "$2" train bad.train
}
refuses 3 "there is no layer \"liner\" (bad.train, line 6)" "layer liner 3"
refuses 3 "'linear N'" "layer linear"
refuses 3 "whole number" "layer linear 1.5"
refuses 3 "there is no loss" "loss hinge"
refuses 3 "there is no array 'that'" "input that"
refuses 3 "points.npy" "data points.npy"
refuses 3 "the target 'side' is i64[640]" "loss mse"
grep -q "bad.train, line 5" err
grep -q "labels go with 'loss cross-entropy'" err
refuses 3 "the target 'at' is f32[640, 2]" "target at"
sed 's/^layer linear 2/layer linear 1/' xor.train >bad.train
fails 3 "label 1" train bad.train
grep -q "of 'side' in points.npz" err
grep -q "bad.train, line 8" err
sed 's/^layer linear 24/layer embedding 4 4/' xor.train >bad.train
fails 3 "bad.train, line 6" train bad.train
echo "layers 3" >bad.train
fails 3 "there is no statement \"layers\" (bad.train, line 1)" train bad.train
echo "data points.npz" >bad.train
fails 3 "line 'input'" train bad.train
