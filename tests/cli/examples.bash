# The files that examples of help speak of, made in the folder at hand; for examples.sh.

standard=/usr/share/libonnx-testdata/data/node

# model.onnx, which is one of three: a layer, the same with an open size, and one of images.
make_models() {
  mkdir layer open image
  cat >layer/model.txt <<'GRAPH'
weights "model.npz"
graph @model(%x: f32[2, 4]) {
  %encoder.w = constant @encoder.w : f32[4, 32]
  %head.w = constant @head.w : f32[32, 3]
  %h = dot %x, %encoder.w {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %h, %head.w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
GRAPH
  cat >open/model.hone <<'GRAPH'
graph @model(%x: f32[batch, 4]) where batch in 1..64 {
  %y = exp %x
  return %y
}
GRAPH
  cat >image/model.hone <<'GRAPH'
graph @model(%x: f32[N, C, H, W]) where N in 1..8, C in 1..8, H in 1..512, W in 1..512 {
  %y = abs %x
  return %y
}
GRAPH
  cat >w.hone <<'GRAPH'
graph @w(%a: f32[4, 32], %b: f32[32, 3]) {
  %encoder.w = neg %a
  %head.w = neg %b
  return %encoder.w, %head.w
}
GRAPH
  hone run w.hone -o layer/model.npz
  mv layer/model.txt layer/model.hone
  for model in layer open image; do hone convert $model/model.hone -o $model/model.onnx; done
  cp layer/model.* .
  hone compile model.onnx --threads 1 -o model.honec
  cp model.honec old.honec
  cp model.honec new.honec
  for plan in model old new; do hone compile model.onnx --threads 1 --emit plan -o $plan.plan; done
  hone zoo export mlp --size tiny -o mlp.hone
  cp "$ROOT/tests/fuzz/corpus/gguf/tiny.gguf" model.gguf
  cp "$ROOT/tests/fuzz/corpus/gguf/encoder.gguf" encoder.gguf
  printf 'the other one and the other on a third one, again and again' >words.txt
  hone run mlp.hone --input x=2x16xf32=1 -o y.npy
  printf 'graph @x(%%a: f32[2, 16]) {\n  %%x = max %%a, %%a\n  return %%x\n}\n' >x.hone
  for file in x.npy x.npz; do hone run x.hone --input a=2x16xf32=1 -o $file; done
  printf 'graph @s(%%a: f32[2, 4]) {\n  %%x = neg %%a\n  return %%x\n}\n' >s.hone
  mkdir samples
  for seed in 1 2 3; do hone run s.hone --seed $seed -o samples/$seed.npy; done
  # TensorProto: two dims, type 1, and 4-byte numbers.
  hone run model.onnx --input x=2x4xf32=1 -o in_out.npy
  { printf '\x08\x02\x08\x04\x10\x01\x4a\x20'; printf '\x00\x00\x80\x3f%.0s' {1..8}; } >input_0.pb
  { printf '\x08\x02\x08\x03\x10\x01\x4a\x18'; tail -c 24 in_out.npy; } >output_0.pb
}

# Gives an example the files that it means, where several have the name.
files_for() { # files_for EXAMPLE
  local kind=layer
  [[ $1 != *batch=[148]* || $1 == *zoo:* ]] || kind=open
  [[ $1 != *224x224* ]] || kind=image
  cp $kind/model.onnx .
  if [[ $1 == "hone train layout"* && -e layout.set ]]; then
    rm -r set
    mv layout.set set
    echo 'train zoo:squeezenet,size=tiny' >my.split
  fi
  if [[ $1 == "hone "*" plans set"* && -e plans.set ]]; then
    rm -r set
    mv plans.set set
  fi
}

# A log, and what commands of it read and write.
make_measured() {
  log_with_plan "$HONE_LOG" model.onnx model.plan
  hone log export -o log.jsonl
  cp "$HONE_LOG" other.db
  hone target show >my.target
  hone bench zoo:mlp,size=tiny --threads 1 --seconds 0.1 --record speed.json
}

# Data sets, and a model that has learned from a part of one.
make_learned() {
  local tiny=(--threads 1 --schedules 8)
  build_set zoo:{squeezenet,mobilenet_v2},image=64 --kernels 6 "${tiny[@]}" -o part.set
  hone train cost part.set --members 2 --epochs 1 -o my.model
  cp -r part.set set
  build_set zoo:resnet18,image=64 --kernels 9 "${tiny[@]}" -o set
  for copy in zoo a b; do cp -r set $copy.set; done
  if command -v xz >/dev/null; then
    unpack_some zen3
    unpack_some xeon
  fi
  printf 'train zoo:squeezenet,image=64\ntest zoo:mobilenet_v2,image=64\n' >my.split
  hone dataset build zoo:mlp,size=tiny zoo:squeezenet,size=tiny --task layout --plans 24 --whole 0 \
    --budget 4s -o layout.set
  hone dataset build zoo:mlp,size=tiny zoo:squeezenet,size=tiny --task plans --plans 1 \
    --each 0.1s --cost analytic -o plans.set
}

make_rest() {
  local data=$ROOT/../shared/data/tpu
  [[ ! -e $data ]] || cp "$data/op_tuning_data.pb" .
  [[ ! -e $standard ]] || ln -s $standard cases
  cp -r "$ROOT/rules" rules
  cp rules/movement.rules new.rules
  cp rules/movement.rules my.rules
  printf '(relu ?x) => (relu ?x)\n(tanh ?x) => (tanh ?x)\n' >multi.txt
  : >graph_subst.pb
  printf 'id,lower,upper,size\nb0,0,4,16\nb1,2,6,8\nb2,4,9,16\n' >buffers.csv
  printf '%s' '{"problem": {"nodes": {"intervals": [[0,1]], "costs": [[2,1]], "usages": [[0,0]]},' \
    '"edges": {"nodes": [], "costs": []}}}' >problem.json
  printf '[0]\n' >solution.txt
  hone grad mlp.hone --optimizer momentum -o step.hone
  hone shard step.hone --pipeline 2 -o step.pipeline
  printf '3\n0,\n0,\n1,\n1000,8\n1000,8\n' >tasks.txt
  printf '%s' '{"maxSizePerFPGA": 9, "maxFPGAs": 2, "nodes": [' \
    '{"id": 0, "cpuLatency": 9, "fpgaLatency": 1, "size": 1}], "edges": []}' >graph.json
  printf '{"fpgas": [{"nodes": [0]}]}' >split.json
  printf 'graph @at(%%a: f32[64, 2], %%b: f32[64, 1]) {\n  %s\n  %s\n  return %%at, %%side\n}\n' \
    '%at = neg %a' '%side = neg %b' >points.hone
  hone run points.hone -o points.npz
  printf '%s\n' 'data points.npz' 'input at' 'target side' 'loss mse' 'layer linear 1' \
    'epochs 2' >digits.train
  mkdir hone-fuzz hone-crash-1234abcd .zfunc
  mkdir -p .config/fish/completions
  cp model.hone model.npz hone-crash-1234abcd
  mv hone-crash-1234abcd/model.hone hone-crash-1234abcd/graph.hone
  cp model.plan hone-crash-1234abcd/given.plan
  write_case hone-fuzz/1234.case
  echo "a secret of the examples" >my.secret
}
