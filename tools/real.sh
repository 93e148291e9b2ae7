#!/usr/bin/env bash
# ./dev bench real: the models of tools/real against engines of PyPI, in an environment of its own
# that is made in build/bench/real/venv (6 GB). PYTHON names the interpreter that makes it. Packages
# that PyPI does not give are named; nothing of `./test` needs them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
venv=$root/build/bench/real/venv
python=$venv/bin/python
packages=(numpy torch torchvision transformers onnx onnxscript onnxruntime openvino scikit-learn
  skl2onnx)

lacking() {
  "$python" - "${packages[@]}" <<'END'
import importlib.metadata as metadata, sys

for package in sys.argv[1:]:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        print(package)
END
}

if [[ " $* " != *" --help "* && ! -x $python ]]; then
  mkdir -p "$(dirname "$venv")"
  "${PYTHON:-/usr/bin/python3}" -m venv "$venv" ||
    die "no environment can be made: apt-get install python3-venv"
fi
missing=$(lacking)
if [[ $missing ]]; then
  # shellcheck disable=SC2086  # a name a word
  "$venv/bin/pip" install --disable-pip-version-check $missing || true
fi
missing=$(lacking | tr '\n' ' ')
[[ ! $missing ]] || say "missing, so what needs them is left out:" $missing
exec "$python" -B "$root/tools/real/real.py" "$@"
