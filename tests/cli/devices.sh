# A batch is divided among parts of this machine; what cannot be divided is refused by name.
source "$ROOT/tests/cli/expect.bash"
cat >rows.hone <<'END'
graph @rows(%x: f32[N, 4], %w: f32[4, 2]) -> f32[N, 2] where N in 1..64 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
}
END
"$HONE" run rows.hone --dim N=5 -o one.npz
for devices in 1 2 3 8 cpu,cpu; do
  "$HONE" run rows.hone --dim N=5 --devices "$devices" --expect one.npz --rtol 1e-5 2>told
  grep -q "rows of the batch" told
done
says "with 2, 2, 1 rows" run rows.hone --dim N=5 --devices 3
says "take turns" run rows.hone --dim N=64 --devices 64
"$HONE" check rows.hone --dim N=5 --devices 2 >/dev/null
"$HONE" check zoo:lstm,size=tiny,batch=3 --devices 2 --batch tokens:1 >/dev/null
fails 4 "--batch INPUT" run zoo:lstm,size=tiny,batch=3 --devices 2

# No CPU runs in place of a GPU without a word.
system_with_gpu gpus.system 2 0
export HONE_CUDA_LIBRARY=$PWD/none
fails 4 "there is no NVIDIA driver" run rows.hone --dim N=5 --devices 2 --system gpus.system
fails 4 "there is no NVIDIA driver" run rows.hone --dim N=4 --mesh x=2 --system gpus.system
fails 2 "device 0 is 'cpu 0'" run rows.hone --dim N=4 --devices cpu,cpu --system gpus.system
unset HONE_CUDA_LIBRARY

"$HONE" bench rows.hone --dim N=4 --devices 2 --runs 5 --json figures.json >report
grep -q "^cpu 1 .* 2 " report
grep -q '"waiting"' figures.json

# Sums over the batch: each device has a part of them.
cat >mean.hone <<'END'
graph @mean(%x: f32[5, 3]) -> (f32[3], f32[5, 3]) {
  %m = reduce %x {kind = sum, axes = [0]}
  %b = broadcast %m {dims = [5, 3], map = [1]}
  %y = sub %x, %b
  return %m, %y
}
END
"$HONE" run mean.hone -o mean.npz
for devices in 2 3 8; do
  "$HONE" run mean.hone --devices "$devices" --expect mean.npz --rtol 1e-5
done
"$HONE" check mean.hone --devices 2 >/dev/null

# Sums in a loop that data ends, and in a branch of it.
cat >rounds.hone <<'END'
graph @rounds(%x: f32[5, 3]) -> (f32[5, 3], f32[]) {
  %one = constant 1 : f32[]
  %y, %n = while %x, %one
    condition(%a: f32[5, 3], %s: f32[]) { %c = compare %s, 200 {direction = lt} return %c }
    body(%a: f32[5, 3], %s: f32[]) {
      %d = mul %a, %a
      %c = compare %s, 50 {direction = lt}
      %t = if %c, %d
        then(%d: f32[5, 3]) { %t = reduce %d {kind = sum, axes = [0, 1]} return %t }
        else(%d: f32[5, 3]) { %r = reduce %d {kind = sum, axes = [0, 1]} %t = mul %r, 2 return %t }
      %u = add %s, %t
      return %a, %u
    }
  return %y, %n
}
END
"$HONE" run rounds.hone -o rounds.npz
for devices in 2 3; do
  "$HONE" run rounds.hone --devices "$devices" --expect rounds.npz --rtol 1e-5
done
"$HONE" check rounds.hone --devices 2 --transport shared >/dev/null

cat >most.hone <<'END'
graph @most(%x: f32[4, 3]) -> f32[3] {
  %m = reduce %x {kind = max, axes = [0]}
  return %m
}
END
fails 4 "op 'reduce' mixes the rows" run most.hone --devices 2
fails 4 "node '%m' (reduce)" check most.hone --devices 2
"$HONE" run most.hone --devices 2 --batch x:1 >/dev/null

# Devices that meet in collectives take turns, too.
cat >meet.hone <<'END'
graph @meet(%x: f32[8]) -> f32[8] {
  %s = all_reduce %x {kind = sum, group_size = 64}
  return %s
}
END
says "64 devices of 1 thread, which meet in collectives; they take turns" run meet.hone --devices 64

# One device by its name.
"$HONE" run rows.hone --dim N=5 --device cpu --expect one.npz --rtol 1e-5 2>told
grep -q "1 device of" told
HONE_CUDA_LIBRARY=$PWD/none fails 4 "there is no NVIDIA driver" run rows.hone --device cuda:0
fails 2 "there is no device '2'" run rows.hone --device 2
fails 2 "only one can be given" run rows.hone --device cpu --devices 2

fails 2 "no input is called 'y'" run mean.hone --devices 2 --batch y
fails 2 "no dim 2" run mean.hone --devices 2 --batch x:2
fails 2 "--batch needs --devices" run mean.hone --batch x
HONE_CUDA_LIBRARY=$PWD/none fails 4 "there is no NVIDIA driver" run mean.hone --devices cpu,cuda:0
fails 2 "named twice" run mean.hone --devices cuda:0,cuda
fails 2 "takes one GPU, or CPUs" explain mean.hone --devices cuda:0,cpu
fails 2 "outside of 1..256" run mean.hone --devices 0
fails 2 "does not go with --devices" run mean.hone --devices 2 --plan-seed 1
fails 2 "does not go with --devices" bench mean.hone --devices 2 --profile
fails 2 "does not go with --devices" run mean.hone --devices 2 --backend reference
"$HONE" compile rows.hone --dim N=4 -o rows.honec
fails 4 "has no graph to divide" run rows.honec --devices 2

# A compiled file has its division inside.
says "for 3 devices" compile rows.hone --dim N=5 --devices 3 -o three.honec
says "with 2, 2, 1 rows" run three.honec
"$HONE" inspect three.honec >told
grep -q "^devices *3" told
grep -q "device 0 and 1, " told
"$HONE" inspect three.honec --format json | grep -q '"first_row": 4'
"$HONE" check three.honec --model rows.hone >/dev/null
"$HONE" compile mean.hone --devices 2 -o sums.honec
"$HONE" check sums.honec --model mean.hone >/dev/null
"$HONE" bench sums.honec --runs 5 >/dev/null
fails 2 "of one device" bench sums.honec --runs 5 --donate
fails 2 "for compiled models" compile rows.hone --devices 2
fails 2 "for one device" compile rows.hone --devices 2 --sizes N=4 -o no.honec
fails 4 "sizes that are numbers; N is open" compile rows.hone --devices 2 -o no.honec
fails 4 "op 'reduce' mixes the rows" compile most.hone --devices 2 -o no.honec
fails 2 "not on several devices" compile rows.hone --dim N=4 --devices 2 --emit library -o libno.so
head -c 3000 three.honec >cut.honec
fails 3 "cut.honec" run cut.honec

# A state that a loop adds to, and that is not zero at first, counts once.
cat >rounds.hone <<'GRAPH'
graph @rounds(%x: f32[4, 3], %t: f32[3]) -> (f32[3], f32[]) {
  %one = constant 1 : f32[]
  %a, %b, %n = while %x, %t, %one
    condition(%x: f32[4, 3], %s: f32[3], %n: f32[]) {
      %c = compare %n, 20 {direction = lt}
      return %c
    }
    body(%x: f32[4, 3], %s: f32[3], %n: f32[]) {
      %w = broadcast %n {dims = [4, 3], map = []}
      %d = mul %x, %w
      %e = reduce %d {kind = sum, axes = [0]}
      %u = add %s, %e
      %m = mul %n, 3
      return %x, %u, %m
    }
  return %b, %n
}
GRAPH
for devices in 2 3 4; do
  "$HONE" check rounds.hone --devices $devices --batch x >out 2>err || { cat out err; exit 1; }
done
