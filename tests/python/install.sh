# pip makes and installs the package from the repository, without a network; and so it does from the
# wheel that ./dev wheel makes.
# $ROOT: the repository, $BUILD: its build folder, $PYTHON: the interpreter.

source "$ROOT/tests/share.bash"
in_share 0 3 || { echo "another commit runs it, one of three ways to install"; exit 77; }
[[ -e $BUILD/python/hone.stamp ]] || { echo "there is no Python package in $BUILD"; exit 77; }
[[ $BUILD == "$ROOT/build/release" ]] || { echo "pip takes build/release"; exit 77; }
"$PYTHON" -m venv --system-site-packages venv || { echo "there is no python3-venv"; exit 77; }
unset PYTHONPATH

works() {
  (cd venv && bin/python -) <<'END' # Not where a folder `hone` lies.
import hone, numpy, os
from importlib import metadata

folder = os.path.dirname(hone.__file__)
assert "venv" in folder, folder
for name in "py.typed", "_compiler.pyi", "_runtime.pyi", "graph.pyi", "_jax.py", "torch.py":
    assert os.path.exists(os.path.join(folder, name)), name
(entry,) = metadata.distribution("hone").entry_points
assert (entry.group, entry.name) == ("torch_dynamo_backends", "hone"), entry
assert entry.value == "hone.torch:backend", entry
text = b"graph @n(%x: f32[3]) -> f32[3] { %y = neg %x return %y }"
model = hone.compile(text, cache=None, log=None)
assert model(numpy.array([1, 2, 3], numpy.float32)).tolist() == [-1, -2, -3]
END
}

venv/bin/pip install --no-index --quiet "$ROOT"
works
venv/bin/pip uninstall --yes --quiet hone
"$PYTHON" "$ROOT/python/backend.py" wheels >made
[[ -s $(tail -n 1 made) ]]
venv/bin/pip install --no-index --quiet wheels/hone-*.whl
works
