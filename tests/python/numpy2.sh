# The tests of arrays by the newest numpy of PyPI, with the newest onnx and onnxruntime beside it:
# those of values, and one of three others in a share.
# They are downloaded once, 80 MB, to build/pypi; where that cannot be, the test is skipped.
# $ROOT: the repository, $BUILD: its build folder, $PYTHON: the interpreter.

[[ -e $BUILD/python/hone.stamp ]] || { echo "there is no Python package in $BUILD"; exit 77; }
venv=$ROOT/build/pypi/$("$PYTHON" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
unset PYTHONPATH

works() {
  "$venv/bin/python" -c 'import numpy, onnx, onnxruntime
assert numpy.__version__.startswith("2."), numpy.__version__' 2>/dev/null
}

[[ -x $venv/bin/pip ]] || "$PYTHON" -m venv "$venv" || { echo "there is no python3-venv"; exit 77; }
"$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade --timeout 20 --retries 1 \
  'numpy>=2,<3' onnx onnxruntime ||
  works || { echo "skipped, PyPI has no numpy 2 for $PYTHON, or cannot be reached"; exit 77; }
works

export PYTHONPATH=$BUILD/python
source "$ROOT/tests/share.bash"
number=0
for name in values model graph documents; do
  [[ $name == values ]] || in_share "$((number++))" 3 || continue
  echo "== $name, numpy $("$venv/bin/python" -c 'import numpy; print(numpy.__version__)')"
  mkdir "$name"
  (cd "$name" && "$venv/bin/python" -B "$ROOT/tests/python/$name.py")
done
