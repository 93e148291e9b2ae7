"""The models of tests/python/of_jax.py, wider, and the HLO modules that run on a CPU: hone and JAX
in turns. Prints NAME SECONDS-OF-HONE SECONDS-OF-JAX for each. Argument: the number of threads."""

import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = int(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # JAX takes a thread a core

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/python"))

import jax  # noqa: E402
import numpy as np  # noqa: E402
import of_jax  # noqa: E402

import hone  # noqa: E402

WIDER = 32
# Of these only the features grow: dims of windows and of nodes are what the functions know.
FEATURES_ALONE = ("cnn", "graph network")
OPTIONS = {"cache": None, "log": None, "progress": False, "cost": "default", "threads": THREADS}
RANDOM = np.random.default_rng(11)


def wider(name, array, is_input):
    shape = list(array.shape)
    grows = range(len(shape))
    if name in FEATURES_ALONE:
        grows = range(len(shape) - (1 if is_input or len(shape) < 2 else 2), len(shape))
    if name == "cnn" and len(shape) == 2:
        grows = [0]
    if name == "cnn" and shape[-2:] == [4, 4]:
        grows = range(2, 4)
    for i in grows:
        shape[i] *= WIDER
    return (RANDOM.uniform(-1, 1, shape) / max(1, shape[0]) ** 0.5).astype(np.float32)


def median_of_turns(ours, theirs):
    """Seconds of a call of each, by turns of a tenth of a second."""
    begin = time.perf_counter()
    theirs()
    calls = max(1, int(0.1 / max(1e-6, time.perf_counter() - begin)))
    seconds = ([], [])
    for _ in range(7):
        for run, list_of in zip((ours, theirs), seconds):
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            list_of.append((time.perf_counter() - begin) / calls)
    return tuple(statistics.median(one) for one in seconds)


def show(name, ours, theirs):
    ours(), theirs()
    print(name.replace(" ", "_"), *median_of_turns(ours, theirs), flush=True)


for name, (model, parameters, x) in of_jax.MODELS.items():
    parameters = jax.tree.map(lambda one: jax.numpy.asarray(wider(name, one, False)), parameters)
    x = jax.numpy.asarray(wider(name, x, True))
    compiled, jitted = hone.jax(model, **OPTIONS), jax.jit(model)
    show(name, lambda: compiled(parameters, x),
         lambda: jax.block_until_ready(jitted(parameters, x)))  # fmt: skip

from jax._src import xla_bridge  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jaxlib import _hlo, _jax, xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402


def given(port, for_hone):
    array = np.full(port.shape, 0.5).astype(jax.numpy.dtype(port.dtype))
    return array.view("u2") if for_hone and port.dtype == "bfloat16" else array


def of_module(path, folder):
    """The module by hone, and by XLA through the StableHLO that hone writes of it."""
    model = hone.compile(path, **OPTIONS)
    written = os.path.join(folder, "module.mlir")
    binary = os.path.join(ROOT, "build/release/hone")
    subprocess.run([binary, "convert", path, "-o", written], check=True, capture_output=True)
    with mlir.make_ir_context():
        module = ir.Module.parse(open(written).read())
    client = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(jax.devices("cpu")[:1]))
    program = client.compile_and_load(module, devices, xla_client.CompileOptions())
    ours = [given(port, True) for port in model.inputs]
    theirs = [jax.numpy.asarray(given(port, False)) for port in model.inputs]
    return lambda: model(*ours), lambda: jax.block_until_ready(program.execute(theirs))


with tempfile.TemporaryDirectory() as folder:
    for path in sorted(glob.glob(os.path.join(ROOT, "build/bench/hlo/xla_cpu/*.hlo"))):
        show(os.path.basename(path), *of_module(path, folder))
