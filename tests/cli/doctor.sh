# hone doctor tells what this machine has, what hone would use, what is missing, and ways out.
source "$ROOT/tests/cli/expect.bash"
export XDG_CACHE_HOME=$PWD/caches HONE_LOG=$PWD/log.db HONE_PRICES=$PWD/prices
hone doctor >out 2>err
contains '^machine$'
contains '^  instructions +(x86-64-v2|avx2|avx512)'
contains '^  cores +[0-9]+, [0-9]+ logical processors$'
contains '^  caches +[0-9.]+ KiB'
contains '^  version +[0-9.]+$'
contains '^  levels +.*x86-64-v2$'
contains '^GPUs$'
contains "^  cache +0 entries, 0 B in $PWD/caches/hone$"
contains "^  log +none yet; $PWD/log.db$"
contains '^  note +log +.hone tune MODEL. looks for a faster plan'
contains '^  note +prices +.hone calibrate. fits them'
contains '^  prices here +unknown: no kernel was measured here on one thread$'
contains '^  note +prices here +.hone tune MODEL. and .hone bench MODEL. measure kernels'
[[ ! -e caches && ! -e log.db && ! -e prices ]]  # it changes nothing

# A missing thing has a way out.
HONE_CUDA_LIBRARY=$PWD/none.so hone doctor >out 2>err
contains '^  driver +models run on the CPU: there is no NVIDIA driver: '
contains '^  missing +driver +with an NVIDIA GPU'
mkdir none
ln -s "$(command -v env)" none/env
PATH=$PWD/none hone doctor >out 2>err
contains '^  ONNX Runtime +not found; '
contains '^  missing +ONNX Runtime +.npm install onnxruntime-node'
contains '^  missing +PyTorch +pip install torch$'
contains '^  missing +C compiler +apt-get install gcc'
contains '^  missing +perf +apt-get install linux-perf$'

# It tells what is kept, and what is wrong with the places for it.
"$HONE" compile zoo:mlp,size=tiny -o m.honec 2>err
hone doctor >out 2>err
contains "^  cache +[1-9][0-9]* entries, .* in $PWD/caches/hone$"
chmod g+w caches/hone
hone doctor >out 2>err
contains '^  cache +.* is not kept: .*caches/hone'
contains '^  missing +cache '
chmod g-w caches/hone
echo "this is no log" >log.db
hone doctor >out 2>err
contains '^  log +it cannot be read: .*log\.db'
XDG_CACHE_HOME='' HOME='' hone doctor >out 2>err
contains '^  cache +.* is not kept: .*no folder'

# Prices are judged by what was measured here.
for budget in 4s 20s 60s; do # a busy machine takes longer
  HONE_LOG=$PWD/known.db "$HONE" tune zoo:mlp,size=tiny --cache none --threads 1 --budget $budget \
    --only schedules >out 2>err
  HONE_LOG=$PWD/known.db hone doctor >out 2>err
  if grep -q "prices here .*fastest" out; then break; fi
done
contains '^  prices here +the first of [0-9]+ schedules of [0-9]+ kernels is -?[0-9]+ % slower'

hone doctor --json >out 2>err
contains '"name": "processor"'
contains '"state": "missing"'
fails 2 "doctor" doctor zoo:mlp
