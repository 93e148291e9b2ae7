# ./dev bench real, without its engines: a program answers for them, as export.py and engine.py do.
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
mkdir -p package/hone
echo code >package/hone/_runtime.so
cat >engine <<'END'
#!/usr/bin/env bash
# -B export.py NAME BATCH FOLDER, or -B engine.py ENGINE NAME BATCH THREADS FOLDER
echo "${@:3}" >>"$ASKED"
case $2 in
  */export.py) [[ $3 != vgg16 ]] || { echo "no memory" >&2; exit 1; } ;;
  */engine.py)
    case $3 in
      hone) [[ $4 != roberta ]] || { echo '{"failed": "a hole"}'; exit 1; } && took=0.002 ;;
      onnxruntime) echo "a library says" >&2; echo "it broke" >&2; exit 3 ;;
      openvino) took=0.003 ;;
      openvino_own) took=0.001 ;;
      eager) took=0.008 ;;
      inductor) echo '{"failed": "no such op"}'; exit 1 ;;
    esac
    echo '{"version": "7", "loaded": 1, "difference": 2e-7}'
    while read -r _; do echo "{\"seconds\": $took}"; done ;;
esac
END
chmod +x engine
export ASKED=$PWD/asked
real() {
  local pythons=()
  for one in hone onnxruntime openvino openvino_own eager inductor; do
    pythons+=(--python "$one=$PWD/engine")
  done
  python3 -B "$ROOT/tools/real/real.py" --folder bench --package package "${pythons[@]}" "$@"
}

real --models bert,vgg16 --page page.md >out
row='^bert +1 +2\.000 +1\.50 +0\.50 +4\.00 +1\.50 +2e-07$'  # the best one computes in f32
grep -Eq "$row" out
grep -Eq "^bert +2 +2\.000 " out
grep -q "^vgg16: its files cannot be made: no memory$" out
grep -q "^bert, threads 1: ONNX Runtime did not run it: it broke$" out
grep -q "^bert, threads 2: Inductor did not run it: no such op$" out
grep -Eq "^geometric mean +1 +1\.50 +0\.50 +4\.00 +1\.50$" out
grep -q "^| bert | 1 | 2.000 |  | 1.50 | 0.50 | 4.00 |  |  | 1.50 | 2e-07 |$" page.md
grep -q "OpenVINO 7, PyTorch 7" page.md

# Rows are kept, for this build.
cp asked before
real --models bert >again
grep -Eq "$row" again
cmp -s asked before
echo other code >package/hone/_runtime.so
real --models bert --threads 1 --engines openvino >out
grep -Eq "^bert +1 +2\.000 +1\.50 +1\.50 +2e-07$" out
[[ $(diff asked before | grep -c "^<") == 2 ]]  # hone and one rival; the files are there

# A step of training has the rivals that train.
printf '#!/bin/sh\necho "$@" >grad\n' >hone
chmod +x hone
real --models train_mlp --threads 1 --hone "$PWD/hone" >out
grep -Eq "^train_mlp +1 +2\.000 +4\.00 +4\.00 +2e-07$" out
grep -q "^grad .*train_mlp-1/model.onnx --loss cross-entropy --optimizer sgd -o" grad

real --models roberta --threads 1 >out
grep -q "^roberta: hone did not run it: a hole$" out

code=0
real --models none 2>err || code=$?
[[ $code == 1 ]] && grep -q "no model 'none'; there are resnet50" err
code=0
real --engines none 2>err || code=$?
[[ $code == 1 ]] && grep -q "no engine 'none'" err
