# tools/gpu.sh, without a GPU: with none, with a stand-in for hone, and with the fake driver.
gpu=$ROOT/tools/gpu.sh

code=0
HONE_CUDA_LIBRARY=/nowhere/libcuda.so.1 "$gpu" -o none.txt >said 2>&1 || code=$?
[[ $code == 77 && ! -e none.txt ]]
grep -q "there is no GPU here" said

# A stand-in: one model is wrong, one hangs.
cat >stand_in <<'END'
#!/usr/bin/env bash
case "$*" in
  "target list") echo "cuda:0  sm_90" ;;
  check*wrong*) echo "the output differs"; exit 1 ;;
  check*slow*) sleep 30 ;;
  *) echo "did $1" ;;
esac
END
chmod +x stand_in
code=0
HONE=$PWD/stand_in PYTHON=false "$gpu" -o made.txt -m "wrong slow fine" -s 1 >said 2>&1 || code=$?
[[ $code == 1 ]]
grep -q "^== doctor: good" made.txt
grep -q "^== check wrong: FAILED, exit code 1" made.txt
grep -q "^   the output differs" made.txt
grep -q "^== check slow: past its deadline of 1 s" made.txt
grep -q "^== check fine: good" made.txt
grep -q "^== node tests: left out" made.txt
grep -q "^== bench model fine 1 f32: good" made.txt
grep -q "^figure model fine 1 f32: hone -" made.txt
grep -q "^== data set: good" made.txt
grep -q "^   did dataset" made.txt
grep -q "^== price: good" made.txt
grep -q "^== figures of torch: left out, false has no torch" made.txt
# Figures come before checks of models and the data set.
line_of() { grep -n "$1" made.txt | cut -d: -f1; }
[[ $(line_of "^figure kernel softmax") -lt $(line_of "^== check wrong") ]]
grep -q "^== done in" made.txt
code=0
HONE=$PWD/stand_in PYTHON=false "$gpu" -o late.txt -m fine -t 0 >said 2>&1 || code=$?
[[ $code == 0 ]]
grep -q "^== bench model fine 1 f32: left out, no time is left" late.txt
HONE=$PWD/stand_in PYTHON=false "$gpu" -o good.txt -m fine >said 2>&1
grep -q "^== check product f16 129 257 72: good" good.txt
grep -q "^figure product bf16 128 768 3072: hone -" good.txt

# Rivals answer in turns with hone. One that does not answer is asked no more.
cat >rivals <<'END'
#!/usr/bin/env bash
if [[ $1 == -c ]]; then exit 0; fi
while read -r question; do
  if [[ $2 == jax && $question == *kernel* ]]; then sleep 30; fi
  echo "$2 has heard '$question'"
done
END
cat >timer <<'END'
#!/usr/bin/env bash
case "$*" in
  "target list") echo "cuda:0  sm_90" ;;
  bench*) echo "min 1 us, median 2.5 us, p90 3 us, p99 4 us, of 7 runs" ;;
esac
END
chmod +x rivals timer
HONE=$PWD/timer PYTHON=$PWD/rivals "$gpu" -o turns.txt -m fine -s 2 >said 2>&1
grep -q "^figure model fine 1 f32: hone 2.5 us; torch torch has heard 'model fine 1 f32'; jax jax" \
  turns.txt
grep -q "^figure product f32 128 768 3072: hone 2.5 us; torch" turns.txt
grep -q "^figure kernel exp 64 64: .*; jax no answer in 2 s" turns.txt
grep "^figure kernel softmax" turns.txt | grep -qv jax
grep -q "^figure kernel copy 64 64: torch" turns.txt

# Before a visit: what needs no GPU.
"$gpu" -p files -m mlp >said 2>&1
grep -q "^== file of mlp, batch 1, in f32: good" files/prepared.txt
grep -q "^figure file mlp 1 f32: [0-9]* bytes" files/prepared.txt

# The fake driver has no code for kernels of another process: what it refuses is told, and the next
# step follows.
fake=$BUILD/libfake_cuda.so
if [[ -e $fake ]]; then
  code=0
  HONE_CUDA_LIBRARY=$fake PYTHON=false "$gpu" -o fake.txt -m mlp -s 20 >said 2>&1 || code=$?
  [[ $code == 1 ]]
  grep -q "^== target probe: good" fake.txt
  grep -q "^   .*gpu = sm_90" fake.txt
  grep -q "^== check mlp: FAILED" fake.txt
  grep -q "the GPU failed while hone" fake.txt
  grep -q "^== bench model mlp 1 f32: FAILED" fake.txt
  grep -q "^== data set: FAILED" fake.txt
  grep -q "left out: kernel" fake.txt
fi
