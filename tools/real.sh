#!/usr/bin/env bash
# ./dev bench real: the models of tools/real against engines of PyPI, in an environment of its own
# that is made in build/bench/real/venv (6 GB). PYTHON names the interpreter that makes it. Packages
# that PyPI does not give are named; nothing of `./test` needs them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/bench_venv.sh"
folder=$root/build/bench/real

[[ " $* " == *" --help "* && -x $folder/venv/bin/python ]] ||
  bench_venv "$folder" numpy torch torchvision transformers onnx onnxscript onnxruntime openvino \
    scikit-learn skl2onnx
exec "$folder/venv/bin/python" -B "$root/tools/real/real.py" "$@"
