# The package and large ones of others in one process, imported in either order, and arrays that go
# from one to the other. Only ./dev sweep runs this: torch and jax are no dependency of hone.
# $ROOT: the repository, $BUILD: its build folder, $PYTHON: the interpreter that may have them.

[[ -e $BUILD/python/hone.stamp ]] || { echo "there is no Python package in $BUILD"; exit 77; }
export PYTHONPATH=$BUILD/python JAX_PLATFORMS=cpu

cat >use.py <<'END'
import numpy as np

text = b"graph @m(%x: f32[2, 3], %b: bf16[4]) -> (f32[2, 3], bf16[4])"
text += b" { %y = neg %x %c = neg %b return %y, %c }"
model = hone.compile(text, cache=None, log=None, progress=False)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
bits = np.array([0x3F80, 0x4000, 0xC040, 0], np.uint16)  # 1, 2, -3, 0
numbers = [1.0, 2.0, -3.0, 0.0]
ours = model(x, bits)
if peer.__name__ == "torch":
    rows, halves = peer.arange(6, dtype=peer.float32).reshape(2, 3), peer.tensor(numbers).bfloat16()
    theirs = [
        (rows, halves),
        (rows.t().contiguous().t(), peer.cat([halves, halves])[4:]),
        (peer.arange(12, dtype=peer.float32)[::2].reshape(2, 3) / 2, halves),
    ]
    back = peer.from_dlpack(ours[0])
    assert (back == -theirs[0][0]).all()
else:
    import jax.numpy as jnp

    theirs = [(jnp.arange(6, dtype=jnp.float32).reshape(2, 3), jnp.array(numbers, jnp.bfloat16))]
    assert (jnp.asarray(ours[0]) == -theirs[0][0]).all()
for given in theirs:
    y, c = model(*given)
    assert y.tobytes() == (-x).tobytes(), y
    assert c.tobytes() == (bits ^ 0x8000).tobytes(), c
END

tried=
for peer in torch jax; do
  "$PYTHON" -c "import $peer" 2>/dev/null || { echo "$PYTHON has no $peer"; continue; }
  tried=1
  for order in "import $peer; import hone, hone.graph" "import hone, hone.graph; import $peer"; do
    echo "$order"
    { echo "$order; peer = $peer"; cat use.py; } >one.py
    "$PYTHON" -B one.py
  done
done
[[ $tried ]] || exit 77
