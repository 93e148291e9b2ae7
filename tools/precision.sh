#!/usr/bin/env bash
# ./dev bench precision: what fewer bits give, and what engines of PyPI give, in an environment of
# its own that is made in build/bench/precision/venv. PYTHON names the interpreter that makes it.
# Packages that PyPI does not give are named; nothing of `./test` needs them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/bench_venv.sh"
folder=$root/build/bench/precision

[[ " $* " == *" --help "* && -x $folder/venv/bin/python ]] ||
  bench_venv "$folder" numpy onnx onnxruntime openvino
exec "$folder/venv/bin/python" -B "$root/tools/precision/precision.py" "$@"
