"""The tools of JAX read what hone writes as StableHLO and HLO, and compute the same. Skipped where
jax is not installed; HONE_JAX_PYTHON names an interpreter that has it."""

import os
import subprocess
import sys

try:
    import jax
except ImportError:
    other = os.environ.get("HONE_JAX_PYTHON", "")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", os.path.abspath(__file__), *sys.argv[1:]])
    print("skipped: there is no jax; HONE_JAX_PYTHON names an interpreter that has it")
    sys.exit(77)

import numpy as np
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jaxlib import _hlo, _jax, xla_client
from jaxlib.mlir import ir

import hone

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
HONE = os.environ["HONE"]
MODELS = """mlp resnet18 mobilenet_v2 bert_base gpt2 lstm graph_network vit_b16""".split()
WIDE = 1e-3  # sums of f32 in other orders


def parsed(path):
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        module.operation.verify()
        return module


def run_by_xla(module, inputs):
    client = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(jax.devices("cpu")[:1]))
    program = client.compile_and_load(module, devices, xla_client.CompileOptions())
    return [np.asarray(one) for one in program.execute([jax.numpy.asarray(x) for x in inputs])]


def convert(model, path, *options):
    subprocess.run([HONE, "convert", model, "-o", path, *options], check=True, capture_output=True)


known = subprocess.run([HONE, "zoo", "list"], check=True, capture_output=True, text=True).stdout
random = np.random.default_rng(3)
for name in MODELS:
    if name not in known:
        continue
    model = f"zoo:{name},size=tiny"
    convert(model, "m.mlir")
    convert(model, "m.hlo")
    _hlo.hlo_module_from_text(open("m.hlo").read())
    compiled = hone.compile(model, cache=None, log=None, progress=False, cost="default")
    inputs = []
    for port in compiled.inputs:
        if port.dtype.startswith("float"):
            inputs.append(random.uniform(-1, 1, port.shape).astype(port.dtype))
        else:
            inputs.append(random.integers(0, 2, port.shape).astype(port.dtype))
    want = compiled(*inputs)
    want = want if isinstance(want, tuple) else (want,)
    got = run_by_xla(parsed("m.mlir"), inputs)
    assert len(got) == len(want), name
    for ours, theirs in zip(want, got):
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0)))
        np.testing.assert_allclose(ours, theirs, rtol=WIDE, atol=WIDE * scale, err_msg=name)
    print(name, "is read, and computes the same")

# Open sizes.
convert("zoo:mlp,size=tiny,symbolic-batch", "open.mlir")
assert "?x" in str(parsed("open.mlir"))

# Shardings are those of Shardy, and ops of hone's own are composites.
with open("sharded.hone", "w") as file:
    file.write("graph @main(%x: f32[8, 6] on @m [a open, b:(2)2], %w: f32[6, 4]) -> f32[8, 4] "
               "mesh @m = [a = 2, b = 4] {\n"
               "  %s = softmax %x {axis = 1} : f32[8, 6] on @m [a, -]\n"
               "  %y = dot %s, %w {lhs_contract = [1], rhs_contract = [0]}\n"
               "  return %y on @m [a, -]\n}\n")  # fmt: skip
convert("sharded.hone", "sharded.mlir")
text = str(parsed("sharded.mlir"))
for part in ('sdy.mesh @m = <["a"=2, "b"=4]>', '[{"a", ?}, {"b":(2)2}]', '"hone.softmax"'):
    assert part in text, part
