# pip makes and installs the package from the repository, without a network.
# $ROOT: the repository, $BUILD: its build folder, $PYTHON: the interpreter.

[[ -e $BUILD/python/hone.stamp ]] || { echo "there is no Python package in $BUILD"; exit 77; }
[[ $BUILD == "$ROOT/build/release" ]] || { echo "pip takes build/release"; exit 77; }
"$PYTHON" -m venv --system-site-packages venv || { echo "there is no python3-venv"; exit 77; }
venv/bin/pip install --no-index --quiet "$ROOT"
unset PYTHONPATH
cd venv # Not where a folder `hone` lies.
bin/python - <<'END'
import hone, numpy

assert "venv" in hone.__file__, hone.__file__
model = hone.compile("zoo:mlp,size=tiny", cache=None, log=None)
assert model(numpy.zeros((2, 16), numpy.float32)).shape == (2, 10)
END
