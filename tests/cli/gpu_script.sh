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
grep -q "^== bench fine: good" made.txt
grep -q "^== data set: good" made.txt
grep -q "^   did dataset" made.txt
grep -q "^== price: good" made.txt
grep -q "^== products by torch: left out, false has no torch" made.txt
grep -q "^== done in" made.txt
code=0
HONE=$PWD/stand_in PYTHON=false "$gpu" -o late.txt -m fine -t 0 >said 2>&1 || code=$?
[[ $code == 0 ]]
grep -q "^== bench fine: left out, no time is left" late.txt
HONE=$PWD/stand_in PYTHON=false "$gpu" -o good.txt -m fine >said 2>&1
grep -q "^== check product f16 129 257 72: good" good.txt
grep -q "^== product bf16 128 768 3072: good" good.txt

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
  grep -q "^== bench mlp: FAILED" fake.txt
  grep -q "^== data set: FAILED" fake.txt
  grep -q "left out: kernel" fake.txt
fi
