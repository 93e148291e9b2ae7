"""hone.jax: functions and models of JAX compute what JAX computes. Skipped where jax is not
installed; HONE_JAX_PYTHON names an interpreter that has it."""

import functools
import os
import sys
import unittest

try:
    import jax
except ImportError:
    other = os.environ.get("HONE_JAX_PYTHON", "")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", os.path.abspath(__file__), *sys.argv[1:]])
    print("skipped: there is no jax; HONE_JAX_PYTHON names an interpreter that has it")
    sys.exit(77)

import jax.numpy as jnp
import numpy as np
from jax import lax

import hone

jax.config.update("jax_platforms", "cpu")
RANDOM = np.random.default_rng(7)
OPTIONS = {"cache": None, "log": None, "progress": False, "cost": "default"}


def reals(*shape, low=-2.0, high=2.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def integers(*shape, low=-9, high=10):
    return RANDOM.integers(low, high, shape).astype(np.int32)


def check(test, function, *args, tolerance=2e-5, **options):
    want = jax.tree_util.tree_leaves(jax.jit(function, **options)(*args))
    got = jax.tree_util.tree_leaves(hone.jax(function, **options, **OPTIONS)(*args))
    test.assertEqual(len(got), len(want))
    for ours, theirs in zip(got, want):
        test.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        if jnp.issubdtype(theirs.dtype, jnp.inexact):
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0)))
            eps = 64 if theirs.dtype.itemsize == 2 else 1
            np.testing.assert_allclose(a, b, rtol=tolerance * eps, atol=tolerance * eps * scale)
        else:
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


X, Y, P = reals(4, 6), reals(4, 6), reals(4, 6, low=0.1, high=0.9)
M, V = reals(5, 5), reals(6)
I, J = integers(4, 6), integers(4, 6, low=1, high=9)
B = RANDOM.random((4, 6)) > 0.5
U = RANDOM.integers(0, 1 << 32, (4, 6), dtype=np.uint32)

UNARY = """abs negative sign floor ceil trunc rint exp exp2 expm1 sin cos tan sinh cosh tanh arctan
arcsinh square cbrt isnan isinf isfinite signbit reciprocal deg2rad rad2deg fabs positive sinc
nan_to_num real conj""".split()
POSITIVE = "sqrt log log2 log10 log1p arcsin arccos arctanh".split()
BINARY = """add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp copysign
fmod remainder floor_divide greater greater_equal less less_equal equal not_equal
heaviside nextafter""".split()
INTEGER = """bitwise_and bitwise_or bitwise_xor add multiply subtract maximum minimum floor_divide
remainder left_shift right_shift power gcd lcm""".split()
REDUCE = """sum prod max min mean var std any all argmax argmin median ptp count_nonzero nansum
nanmax nanmean cumsum cumprod""".split()
SHAPE = {
    "reshape": lambda x: x.reshape(6, 4),
    "transpose": lambda x: x.T,
    "swapaxes": lambda x: jnp.swapaxes(x, 0, 1),
    "moveaxis": lambda x: jnp.moveaxis(x[None], 0, 2),
    "flip": lambda x: jnp.flip(x, 1),
    "roll": lambda x: jnp.roll(x, 2, axis=1),
    "rot90": jnp.rot90,
    "tile": lambda x: jnp.tile(x, (2, 3)),
    "repeat": lambda x: jnp.repeat(x, 2, axis=0),
    "concatenate": lambda x: jnp.concatenate([x, x * 2], axis=1),
    "stack": lambda x: jnp.stack([x, x + 1], axis=1),
    "split": lambda x: jnp.split(x, 3, axis=1),
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 3))),
    "pad_edge": lambda x: jnp.pad(x, 1, mode="edge"),
    "pad_reflect": lambda x: jnp.pad(x, 1, mode="reflect"),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (3, 4, 6)),
    "expand_dims": lambda x: jnp.expand_dims(x, (0, 3)),
    "squeeze": lambda x: jnp.squeeze(x[None]),
    "ravel": jnp.ravel,
    "diag": lambda x: jnp.diag(x[:, :4]),
    "diagonal": jnp.diagonal,
    "tril": jnp.tril,
    "triu": jnp.triu,
    "trace": jnp.trace,
    "meshgrid": lambda x: jnp.meshgrid(x[0], x[1]),
    "eye": lambda x: jnp.eye(4) + x[:, :4],
    "linspace": lambda x: jnp.linspace(x[0, 0], x[0, 1], 7),
    "arange": lambda x: jnp.arange(6) * x[0],
    "take": lambda x: jnp.take(x, jnp.array([3, 0, 2]), axis=1),
    "index": lambda x: x[1:3, ::2],
    "gather": lambda x: x[jnp.array([0, 3, 1]), jnp.array([5, 0, 2])],
    "mask": lambda x: jnp.where(x > 0, x, -1.0),
    "set": lambda x: x.at[1, 2].set(9.0),
    "add_at": lambda x: x.at[jnp.array([0, 1, 0])].add(1.0),
    "max_at": lambda x: x.at[:, jnp.array([1, 1])].max(0.5),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (1, 2), (2, 3)),
    "dynamic_update": lambda x: lax.dynamic_update_slice(x, x[:2, :2] * 3, (1, 4)),
    "clip": lambda x: jnp.clip(x, -0.5, 0.5),
    "select": lambda x: jnp.select([x < -1, x < 1], [x, x * x], 7.0),
    "piecewise": lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2]),
    "sort": lambda x: jnp.sort(x, axis=1),
    "sort_down": lambda x: jnp.sort(x, axis=0, descending=True),
    "argsort": lambda x: jnp.argsort(x, axis=1),
    "top_k": lambda x: lax.top_k(x, 3),
    "sort_pairs": lambda x: lax.sort((jnp.round(x), x), dimension=1, num_keys=2),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x[0]), x[1]),
    "unique_counts": lambda x: jnp.unique(jnp.round(x), size=5, fill_value=0.0),
    "histogram": lambda x: jnp.histogram(x, bins=4, range=(-2, 2)),
    "bincount": lambda x: jnp.bincount(jnp.abs(jnp.round(x)).astype(int).ravel(), length=4),
    "interp": lambda x: jnp.interp(x[0], jnp.linspace(-2, 2, 5), jnp.arange(5.0)),
    "diff": lambda x: jnp.diff(x, axis=1),
    "gradient": lambda x: jnp.gradient(x, axis=1),
    "convolve": lambda x: jnp.convolve(x[0], x[1, :3], mode="same"),
    "polyval": lambda x: jnp.polyval(x[0], x[1]),
    "outer": lambda x: jnp.outer(x[0], x[1]),
    "cross": lambda x: jnp.cross(x[:, :3], x[:, 3:]),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: jnp.tensordot(x, x, axes=((0, 1), (0, 1))),
    "kron": lambda x: jnp.kron(x[:2, :2], x[:2, :2]),
    "inner": lambda x: jnp.inner(x, x),
    "vdot": lambda x: jnp.vdot(x, x),
    "norm": lambda x: jnp.linalg.norm(x, axis=1),
    "matrix_power": lambda x: jnp.linalg.matrix_power(x[:, :4], 3),
    "bf16": lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.bfloat16),
    "f16": lambda x: x.astype(jnp.float16) + 1,
    "to_int": lambda x: (x * 3).astype(jnp.int32),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "population_count": lambda x: lax.population_count(jnp.abs(x * 99).astype(jnp.uint32)),
    "clz": lambda x: lax.clz(jnp.abs(x * 99).astype(jnp.uint32)),
    "rsqrt": lambda x: lax.rsqrt(jnp.abs(x) + 1),
    "erf": lambda x: lax.erf(x),
    "erfc": lambda x: lax.erfc(x),
    "erf_inv": lambda x: lax.erf_inv(x / 3),
    "lgamma": lambda x: lax.lgamma(jnp.abs(x) + 0.5),
    "digamma": lambda x: lax.digamma(jnp.abs(x) + 0.5),
    "cummax": lambda x: lax.cummax(x, axis=1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, axis=1),
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x, axis=0),
    "reduce_window": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"),
    "reduce_precision": lambda x: lax.reduce_precision(x, 5, 10),
    "select_n": lambda x: lax.select_n(x > 0, x, -x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda v: v * 2, lambda v: v - 1, x),
    "switch": lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x),
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, v: v * 0.5 + i, x),
    "while": lambda x: lax.while_loop(lambda v: jnp.sum(v) < 50, lambda v: v + 1, jnp.abs(x)),
    "scan": lambda x: lax.scan(lambda s, row: (s + row, s * row), x[0], x),
    "map": lambda x: lax.map(lambda row: jnp.sum(row * row), x),
    "vmap": jax.vmap(lambda row: jnp.dot(row, row)),
    "grad": jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)),
    "hessian": lambda x: jax.hessian(lambda v: jnp.sum(v**3))(x[0]),
    "jvp": lambda x: jax.jvp(jnp.tanh, (x,), (x,)),
    "jacfwd": lambda x: jax.jacfwd(lambda v: v * v[::-1])(x[0]),
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "gelu": jax.nn.gelu,
    "gelu_exact": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "softplus": jax.nn.softplus,
    "leaky_relu": jax.nn.leaky_relu,
    "hard_swish": jax.nn.hard_swish,
    "one_hot": lambda x: jax.nn.one_hot(jnp.abs(jnp.round(x)).astype(int), 3),
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=1),
    "standardize": jax.nn.standardize,
    "random_uniform": lambda x: x + jax.random.uniform(jax.random.key(3), (4, 6)),
    "random_normal": lambda x: x + jax.random.normal(jax.random.key(4), (4, 6)),
    "random_bits": lambda x: jax.random.bits(jax.random.key(5), (4, 6)),
    "random_permutation": lambda x: jax.random.permutation(jax.random.key(6), x),
    "random_categorical": lambda x: jax.random.categorical(jax.random.key(7), x),
    "segment_sum": lambda x: jax.ops.segment_sum(x, jnp.array([0, 2, 0, 1]), 3),
}


class Functions(unittest.TestCase):
    def each(self, names, *args, module=jnp):
        for name in names:
            with self.subTest(name):
                check(self, getattr(module, name), *args)

    def test_unary(self):
        self.each(UNARY, X)

    def test_positive(self):
        self.each(POSITIVE, P)

    def test_binary(self):
        self.each(BINARY, X, Y)
        self.each(["power", "float_power"], P, Y)

    def test_integers(self):
        self.each(INTEGER, J, integers(4, 6, low=1, high=9))
        self.each(["bitwise_not", "abs", "sign", "negative"], I)
        self.each(["bitwise_and", "bitwise_or", "add", "multiply"], U, U[::-1].copy())

    def test_bools(self):
        self.each(["logical_and", "logical_or", "logical_xor"], B, ~B[::-1])
        self.each(["logical_not", "all", "any", "sum"], B)

    def test_reductions(self):
        self.each(REDUCE, X)
        for name in REDUCE:
            if name not in ("ptp",):
                with self.subTest(name, axis=1):
                    check(self, functools.partial(getattr(jnp, name), axis=1), X)

    def test_shapes_and_more(self):
        for name, function in SHAPE.items():
            with self.subTest(name):
                check(self, function, X)

    def test_products(self):
        check(self, jnp.matmul, reals(3, 4, 5), reals(3, 5, 2))
        check(self, jnp.dot, M, M)
        image, kernel = reals(2, 8, 8, 3), reals(3, 3, 3, 4)
        for stride, padding, dilation in ((1, "SAME", 1), (2, "VALID", 1), (1, "VALID", 2)):
            convolve = functools.partial(
                lax.conv_general_dilated, window_strides=(stride, stride), padding=padding,
                rhs_dilation=(dilation, dilation), dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )  # fmt: skip
            check(self, convolve, image, kernel)
            check(self, jax.grad(lambda x, k, f=convolve: jnp.sum(f(x, k) ** 2), (0, 1)),
                  image, kernel, tolerance=1e-4)  # fmt: skip


class Calls(unittest.TestCase):
    def test_trees_and_numbers(self):
        def f(tree, scale, *, shift=1.0):
            return {"out": tree["a"] * scale + shift, "pair": (tree["b"][0], None)}

        check(self, f, {"a": X, "b": [Y, I]}, 3.0)
        got = hone.jax(f, **OPTIONS)({"a": X, "b": [Y, I]}, 2, shift=0.5)
        np.testing.assert_allclose(got["out"], X * 2 + 0.5, rtol=1e-6)
        self.assertIsNone(got["pair"][1])

    def test_static_arguments(self):
        def f(x, times, name="sum"):
            return getattr(jnp, name)(x, axis=0) * times

        for options in ({"static_argnums": 1}, {"static_argnums": (1, 2)},
                        {"static_argnames": ("times", "name")}):  # fmt: skip
            with self.subTest(options):
                if "name" in str(options) or options["static_argnums"] != 1:
                    check(self, f, X, 3, "max", **options)
                else:
                    check(self, f, X, 3, **options)
        compiled = hone.jax(f, static_argnames=("times", "name"), **OPTIONS)
        self.assertEqual(compiled(X, times=2, name="min").shape, (6,))
        self.assertIs(compiled.model(X, 2), compiled.model(X, 2))

    def test_arguments_that_nothing_reads(self):
        check(self, lambda x, y: y + 1, X, Y)

    def test_types(self):
        check(self, lambda x: x + 1, jnp.asarray(X, jnp.bfloat16))
        keys = hone.jax(jax.random.split, **OPTIONS)(jax.random.key(1))
        self.assertEqual(jax.random.key_impl(keys), "threefry2x32")
        np.testing.assert_array_equal(
            jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(1)))
        )
        check(self, lambda x: x, np.float64(1.5))

    def test_refusals(self):
        with self.assertRaisesRegex(hone.UsageError, "traced"):
            jax.jit(hone.jax(jnp.sin, **OPTIONS))(X)
        with self.assertRaisesRegex(hone.UsageError, "no array"):
            hone.jax(lambda x: x, **OPTIONS)("text")
        with self.assertRaises(hone.Unsupported):
            hone.jax(jnp.fft.fft, **OPTIONS)(X)


def dense(x, w, b):
    return x @ w + b


def mlp(parameters, x):
    for w, b in parameters[:-1]:
        x = jax.nn.relu(dense(x, w, b))
    return dense(x, *parameters[-1])


def cnn(parameters, x):
    for kernel in parameters[:-1]:
        x = jax.nn.relu(lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))  # fmt: skip
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ parameters[-1]


def attention(parameters, x):
    q, k, v = (x @ w for w in parameters[:3])
    scores = q @ k.T / np.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v @ parameters[3]


def cached_step(parameters, state, x):
    keys, values, step = state
    q, k, v = (x @ w for w in parameters[:3])
    keys = lax.dynamic_update_slice(keys, k[None], (step, 0))
    values = lax.dynamic_update_slice(values, v[None], (step, 0))
    scores = jnp.where(jnp.arange(keys.shape[0]) <= step, keys @ q, -1e9)
    return (keys, values, step + 1), jax.nn.softmax(scores) @ values


def decoder(parameters, x):
    zeros = jnp.zeros((x.shape[0], x.shape[1]))
    return lax.scan(functools.partial(cached_step, parameters), (zeros, zeros, 0), x)[1]


def lstm(parameters, x):
    w, r, b = parameters

    def step(state, row):
        h, c = state
        i, f, g, o = jnp.split(row @ w + h @ r + b, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(r.shape[0])
    return lax.scan(step, (zero, zero), x)[1]


def graph_network(parameters, x):
    source, target = jnp.array([0, 1, 2, 3, 0]), jnp.array([1, 2, 3, 0, 2])
    messages = jnp.tanh(x[source] @ parameters[0])
    return x @ parameters[1] + jax.ops.segment_sum(messages, target, x.shape[0])


def sorting(parameters, x):
    order = jnp.argsort(x @ parameters[0], axis=0)
    return jnp.take_along_axis(x, order[:, :1], axis=0) * parameters[0][:1, :1]


def search(parameters, x):
    def going(state):
        return jnp.logical_and(state[0] < 20, jnp.sum(state[1] ** 2) > 0.5)

    return lax.while_loop(going, lambda s: (s[0] + 1, s[1] * 0.8), (0, x @ parameters[0]))[1]


def normalized(parameters, x):
    mean, variance = jnp.mean(x, 1, keepdims=True), jnp.var(x, 1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * parameters[0]


def training_step(parameters, x):
    loss, slopes = jax.value_and_grad(lambda p: jnp.mean(mlp(p, x) ** 2))(parameters)
    return loss, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slopes)


def mixture(parameters, x):
    gates = jax.nn.softmax(x @ parameters[0])
    weights, which = lax.top_k(gates, 2)
    experts = jnp.einsum("nd,edh->neh", x, parameters[1])
    chosen = jnp.take_along_axis(experts, which[:, :, None], axis=1)
    return jnp.sum(chosen * weights[:, :, None], axis=1)


LAYERS = [(reals(8, 16) * 0.3, reals(16)), (reals(16, 4) * 0.3, reals(4))]
SQUARE = [reals(8, 8) * 0.3 for _ in range(4)]
MODELS = {
    "mlp": (mlp, LAYERS, reals(5, 8)),
    "cnn": (cnn, [reals(3, 3, 2, 4) * 0.3, reals(3, 3, 4, 4) * 0.3, reals(16, 3)], reals(2, 8, 8, 2)),
    "attention": (attention, SQUARE, reals(6, 8)),
    "decoder": (decoder, SQUARE, reals(5, 8)),
    "lstm": (lstm, [reals(8, 16) * 0.3, reals(4, 16) * 0.3, reals(16)], reals(5, 8)),
    "graph network": (graph_network, SQUARE, reals(4, 8)),
    "sorting": (sorting, SQUARE, reals(6, 8)),
    "normalized": (normalized, [reals(8)], reals(6, 8)),
    "mixture": (mixture, [reals(8, 4), reals(4, 8, 3)], reals(5, 8)),
}  # fmt: skip


class Models(unittest.TestCase):
    def test_forward_and_derivatives(self):
        for name, (model, parameters, x) in MODELS.items():
            with self.subTest(name):
                check(self, model, parameters, x, tolerance=1e-4)
            with self.subTest(name, form="derivatives"):
                slopes = jax.grad(lambda p, v, f=model: jnp.sum(jnp.sin(f(p, v))))
                check(self, slopes, parameters, x, tolerance=5e-4)
            with self.subTest(name, form="batch"):
                batch = jax.vmap(model, (None, 0))
                check(self, batch, parameters, np.stack([x, x * 0.5]), tolerance=1e-4)

    def test_others(self):
        check(self, search, SQUARE, reals(6, 8), tolerance=1e-4)
        check(self, training_step, LAYERS, reals(5, 8), tolerance=1e-4)


if __name__ == "__main__":
    unittest.main()
