"""hone.torch: ops, modules and their training compute what PyTorch computes. Skipped where torch is
not installed; HONE_TORCH_PYTHON names an interpreter that has it."""

import os
import sys
import unittest

try:
    import torch
except ImportError:
    other = os.environ.get("HONE_TORCH_PYTHON", "")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", os.path.abspath(__file__), *sys.argv[1:]])
    print("skipped: there is no torch; HONE_TORCH_PYTHON names an interpreter that has it")
    sys.exit(77)

import torch.nn.functional as F
from torch import nn

import hone
import hone.torch

OPTIONS = {"cache": None, "log": None, "cost": "default"}
DIM = torch.export.Dim


def reals(*shape, low=-2.0, high=2.0):
    return torch.rand(*shape) * (high - low) + low


def integers(*shape, low=-9, high=10):
    return torch.randint(low, high, shape)


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def same(test, ours, theirs, tolerance=2e-5):
    ours, theirs = (torch.utils._pytree.tree_leaves(one) for one in (ours, theirs))
    test.assertEqual(len(ours), len(theirs))
    for one, other in zip(ours, theirs):
        if not isinstance(other, torch.Tensor):
            test.assertEqual(one, other)
            continue
        test.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
        other = other.detach()
        if other.dtype.is_floating_point:
            wide, exact = one.detach().double(), other.double()
            finite = exact[exact.isfinite()]
            scale = max(1.0, float(finite.abs().max())) if finite.numel() else 1.0
            eps = {torch.bfloat16: 400, torch.float16: 50}.get(other.dtype, 1)
            torch.testing.assert_close(
                wide, exact, rtol=tolerance * eps, atol=tolerance * eps * scale, equal_nan=True
            )
        else:
            test.assertTrue(torch.equal(one, other), f"{one} is not {other}")


def check(test, function, *args, tolerance=2e-5, dynamic=None, others=()):
    """All of it by hone, from torch.export."""
    module = function if isinstance(function, nn.Module) else Of(function)
    model = hone.torch.compile(module, args, dynamic_shapes=dynamic, eager=False, **OPTIONS)
    for given in (args, *others):
        same(test, model(*given), module(*given), tolerance)


X, Y, P = reals(4, 6), reals(4, 6), reals(4, 6, low=0.1, high=0.9)
I, J = integers(4, 6), integers(4, 6, low=1, high=9)
B, C = reals(4, 6) > 0, reals(4, 6) > 0
IMAGE = reals(2, 4, 9, 8)

UNARY = """neg abs sign floor ceil trunc round exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh
sigmoid erf isnan isinf isfinite reciprocal square logical_not relu""".split()
POSITIVE = "sqrt rsqrt log log2 log10 log1p asin acos atanh".split()
BINARY = """add sub mul div maximum minimum fmod remainder atan2 floor_divide eq ne lt le gt ge
logical_and logical_or logical_xor true_divide""".split()
WHOLE = """add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor floor_divide remainder
fmod eq lt ge div""".split()
REDUCE = "sum mean prod amax amin var std all any argmax argmin logsumexp".split()
OTHERS = {
    "add of types": lambda x: x + torch.arange(6),
    "alpha": lambda x: torch.add(x, x, alpha=0.5),
    "trunc div": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "pow": lambda x: (x.abs() ** 1.5, x**2, x**3, 2.0**x, x.abs() ** 0.5, (x + 3) ** -1),
    "where": lambda x: torch.where(x > 0, x, -1.0),
    "clamp": lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=torch.tensor(0.2))),
    "masked_fill": lambda x: x.masked_fill(x > 0, 7.0),
    "view": lambda x: x.view(6, 4),
    "transpose": lambda x: x.t().reshape(-1),
    "permute": lambda x: x.view(2, 2, 6).permute(2, 0, 1),
    "expand": lambda x: x[None].expand(3, -1, -1),
    "cat": lambda x: torch.cat([x, x * 2], 1),
    "stack": lambda x: torch.stack([x, x + 1], 1),
    "split": lambda x: torch.split(x, [1, 3, 2], 1),
    "chunk": lambda x: x.chunk(4, 1),
    "unbind": lambda x: x.unbind(0),
    "slice": lambda x: x[1:3, ::2],
    "slice from the end": lambda x: x[-3:, :-2],
    "select": lambda x: x[-1],
    "flip": lambda x: x.flip(0, 1),
    "roll": lambda x: x.roll(2, 1),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
    "pad": lambda x: (F.pad(x, (1, 2, 0, 3), value=0.5), F.pad(x, (-1, 0))),
    "reflect": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
    "replicate": lambda x: F.pad(x[None], (1, 2), mode="replicate"),
    "tril": lambda x: (x.tril(), x.triu(1)),
    "diagonal": lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-1), torch.diag_embed(x)),
    "arange": lambda x: x + torch.arange(0, 3, 0.5),
    "full": lambda x: (torch.full_like(x, 2), torch.zeros(2), torch.ones(3, dtype=torch.int32)),
    "eye": lambda x: torch.eye(4) @ x,
    "linspace": lambda x: torch.linspace(0, 1, 6) * x,
    "types": lambda x: (x.to(torch.int32), x.half(), x.bfloat16() * 2, x.double(), x.bool()),
    "matmul": lambda x: (x @ x.t(), x @ x[0], torch.einsum("ij,kj->ik", x, x), x[0] @ x[1]),
    "batched": lambda x: torch.bmm(x.view(2, 2, 6), x.view(2, 6, 2)),
    "outer": lambda x: torch.outer(x[0], x[1]),
    "addmm": lambda x: torch.addmm(x[:, :4], x, x.t(), beta=0.5, alpha=2),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(0), F.softmin(x, 1)),
    "activations": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x),
                              F.elu(x), F.celu(x), F.selu(x), F.softplus(x), F.hardswish(x),
                              F.hardsigmoid(x), F.relu6(x), F.leaky_relu(x), F.logsigmoid(x),
                              F.hardshrink(x), F.softsign(x), F.tanhshrink(x), F.glu(x)),
    "norms": lambda x: (F.layer_norm(x, (6,)), F.normalize(x), F.rms_norm(x, (6,)),
                        x.norm(), x.norm(dim=1), F.group_norm(x, 2), F.instance_norm(x[None])),
    "means": lambda x: (x.mean(), x.var(0, correction=0), x.std(), torch.var_mean(x, 1)),
    "extremes": lambda x: (x.max(1), x.min(0), x.max(), x.argmax(), x.aminmax()),
    "cumulative": lambda x: (x.cumsum(1), x.cumprod(0)),
    "sort": lambda x: (x.sort(1), x.sort(0, descending=True), x.argsort(1)),
    "topk": lambda x: (x.topk(3), x.topk(2, 0, largest=False)),
    "index": lambda x: (x[torch.tensor([0, 3, -1])], x[:, torch.tensor([1, 1])],
                        x[torch.tensor([[0], [1]]), torch.tensor([5, 0, 2])]),
    "index apart": lambda x: x.view(2, 2, 6)[torch.tensor([0, 1]), :, torch.tensor([3, 4])],
    "index_select": lambda x: x.index_select(1, torch.tensor([3, 0])),
    "gather": lambda x: x.gather(1, torch.tensor([[0, 5], [1, 2], [3, 3]])),
    "take_along_dim": lambda x: torch.take_along_dim(x, x.argsort(1), 1),
    "scatter": lambda x: (x.scatter(1, torch.tensor([[0, 5], [1, 2]]), 9.0),
                          x.scatter_add(0, torch.zeros(4, 6, dtype=torch.int64), x),
                          x.scatter_reduce(1, torch.zeros(4, 6, dtype=torch.int64), x, "amax")),
    "index_put": lambda x: (x.index_put((torch.tensor([0, 2]),), torch.tensor(1.0)),
                            x.index_add(0, torch.tensor([1, 1]), x[:2])),
    "in place": lambda x: x.clone().mul_(2).add_(1),
    "write a slice": lambda x: torch.zeros(4, 8).index_fill(1, torch.tensor([2]), 3.0),
    "embedding": lambda x: F.embedding(torch.tensor([[1, 3], [0, 2]]), x),
    "one_hot": lambda x: F.one_hot(torch.tensor([1, 3, 0]), 4),
    "losses": lambda x: (F.mse_loss(x, x * 2), F.l1_loss(x, x + 1), F.smooth_l1_loss(x, x * 3),
                         F.cross_entropy(x, torch.tensor([1, 0, 5, 2])), F.kl_div(x, x.exp())),
    "cosine": lambda x: F.cosine_similarity(x, x + 1),
    "cdist": lambda x: (x[:, None] - x[None]).square().sum(-1).sqrt(),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
    "attention": lambda x: F.scaled_dot_product_attention(
        x.view(1, 2, 2, 6), x.view(1, 2, 2, 6), x.view(1, 2, 2, 6), is_causal=True),
}  # fmt: skip
OF_IMAGES = {
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool up": lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
    "max_pool with places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "avg_pool": lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, ceil_mode=True),
                           F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "adaptive": lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 3)),
                           F.adaptive_avg_pool2d(x, (12, 5))),
    "bilinear": lambda x: (F.interpolate(x, scale_factor=2, mode="bilinear"),
                           F.interpolate(x, (5, 6), mode="bilinear", align_corners=True)),
    "nearest": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (5, 13))),
    "bicubic": lambda x: F.interpolate(x, (12, 7), mode="bicubic"),
    "pixel_shuffle": lambda x: (F.pixel_shuffle(x, 2), F.channel_shuffle(x, 2)),
    "unfold": lambda x: F.unfold(x, 3, padding=1),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)),
    "group_norm": lambda x: F.group_norm(x, 2),
}  # fmt: skip


class Ops(unittest.TestCase):
    def each(self, names, *args):
        """All of a kind in one graph."""

        def together(*given):
            return [getattr(torch, name)(*given) for name in names]

        check(self, together, *args)

    def test_elementwise(self):
        self.each(UNARY, X)
        self.each(POSITIVE, P)
        self.each(BINARY, X, Y)
        self.each(WHOLE, I, J)
        self.each(["logical_and", "logical_or", "logical_xor", "eq", "mul", "add"], B, C)
        special = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, -2.5])
        self.each("abs sign floor round exp tanh isnan relu sigmoid".split(), special)

    def test_reductions(self):
        for options in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}):
            names = [one for one in REDUCE if options or one not in ("logsumexp",)]
            check(self, lambda x: [getattr(torch, one)(x, **options) for one in names], X)
        check(self, lambda x: (x.sum(), x.sum(1), x.max(), x.all(), x.argmax(0)), I)

    def test_others(self):
        for name, function in OTHERS.items():
            with self.subTest(name):
                check(self, function, X)

    def test_infinities(self):
        special = torch.tensor([0.0, 5.0, -5.0, float("inf"), -float("inf"), float("nan")])
        check(self, lambda a, b: a // b, special[:, None], special[None, :])
        powers = torch.tensor([2.0**i for i in range(-20, 21)], dtype=torch.float64)
        check(self, lambda x: torch.floor(torch.log2(x)), powers)
        check(self, lambda x: torch.floor(torch.log10(x)), 10.0 ** torch.arange(0, 16).double())
        image = torch.ones(1, 1, 3, 5)
        image[0, 0, 0, 0] = float("inf")
        check(self, lambda x: nn.functional.adaptive_avg_pool2d(x, (2, 2)), image)

    def test_a_row_that_attends_to_nothing(self):
        mask = torch.ones(4, 4, dtype=torch.bool)
        mask[1] = False
        attend = nn.functional.scaled_dot_product_attention
        q, k, v = (reals(2, 2, 4, 8) for _ in range(3))
        check(self, lambda q, k, v, mask: attend(q, k, v, attn_mask=mask), q, k, v, mask)

    def test_images(self):
        for name, function in OF_IMAGES.items():
            with self.subTest(name):
                check(self, function, IMAGE)

    def test_convolutions(self):
        for options in ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": "same"},
                        {"groups": 2}, {"groups": 4, "bias": False}):  # fmt: skip
            with self.subTest(options):
                check(self, nn.Conv2d(4, 8, 3, **options), IMAGE)
        for options in ({"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1},
                        {"groups": 2, "dilation": 2}):  # fmt: skip
            with self.subTest(options, transposed=True):
                check(self, nn.ConvTranspose2d(4, 8, 3, **options), IMAGE)
        check(self, nn.Conv1d(4, 6, 3), reals(2, 4, 9))
        check(self, nn.Conv3d(2, 3, 2), reals(1, 2, 4, 5, 6))


class Network(nn.Module):
    """Convolutions, a norm with buffers, and a head."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 3, 2, 1)
        x = F.avg_pool2d(F.gelu(self.second(x)), 2, padding=1)
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """A layer of a transformer, with an embedding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 11)

    def forward(self, tokens):
        size = tokens.shape[1]
        mask = torch.full((size, size), float("-inf")).triu(1)
        return self.head(self.layer(self.table(tokens), mask))


class Broken(nn.Module):
    """Two graphs: the first one ends with a permuted result, and is saved for its derivative."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 6, 3, padding=1)
        self.second = nn.Linear(6, 3)

    def forward(self, x):
        y = torch.tanh(self.first(x)).permute(0, 2, 3, 1)
        torch._dynamo.graph_break()
        return self.second(y).square()


def gradients(module, run, given, loss):
    module.zero_grad()
    made = run(given)
    loss(made).backward()
    return made, [one.grad.clone() for one in module.parameters()]


class Training(unittest.TestCase):
    def train(self, module, inputs, loss=lambda y: y.square().mean(), **compiling):
        torch._dynamo.reset()
        left = []
        options = {"eager": lambda *one: left.append(one), **OPTIONS}
        fast = torch.compile(module, backend="hone", options=options, **compiling)
        for given in inputs:
            before = {name: one.clone() for name, one in module.named_buffers()}
            want = gradients(module, module, given, loss)
            after = {name: one.clone() for name, one in module.named_buffers()}
            for name, one in module.named_buffers():
                one.copy_(before[name])
            got = gradients(module, fast, given, loss)
            same(self, got, want, 1e-4)
            same(self, dict(module.named_buffers()), after, 1e-4)
        self.assertEqual(left, [])

    def test_network(self):
        torch.manual_seed(1)
        self.train(Network(), [reals(3, 4, 16, 16), reals(3, 4, 16, 16)])

    def test_a_graph_break(self):
        torch.manual_seed(6)
        self.train(Broken(), [reals(2, 4, 5, 5), reals(2, 4, 5, 5)])
        plain = reals(2, 4, 5, 5).contiguous(memory_format=torch.channels_last)
        self.train(Broken().to(memory_format=torch.channels_last), [plain])

    def test_network_with_constant_statistics(self):
        torch.manual_seed(2)
        self.train(Network().eval(), [reals(2, 4, 16, 16)])

    def test_transformer(self):
        torch.manual_seed(3)
        target = integers(2, 7, low=0, high=11)
        self.train(Block(), [integers(2, 7, low=0, high=11)],
                   lambda y: F.cross_entropy(y.flatten(0, 1), target.flatten()))  # fmt: skip

    def test_open_sizes_are_compiled_once(self):
        torch.manual_seed(4)
        module = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3))
        counter = []
        plain = hone.torch._compile.compile

        def counted(*args, **kwargs):
            counter.append(1)
            return plain(*args, **kwargs)

        hone.torch._compile.compile = counted
        try:
            self.train(module, [reals(n, 6) for n in (3, 5, 9)], dynamic=True)
        finally:
            hone.torch._compile.compile = plain
        self.assertEqual(len(counter), 2)  # forward and backward

    def test_an_optimizer(self):
        torch.manual_seed(5)
        torch._dynamo.reset()
        module = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        fast = torch.compile(module, backend="hone", options=OPTIONS)
        optimizer = torch.optim.Adam(module.parameters(), 0.02)
        x = reals(64, 4)
        y = x.prod(1, keepdim=True)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.mse_loss(fast(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)


class Compiling(unittest.TestCase):
    def fast(self, function, **options):
        torch._dynamo.reset()
        return torch.compile(function, backend="hone", options={**OPTIONS, **options})

    def test_a_graph_break(self):
        def f(x):
            x = x * 2
            torch._dynamo.graph_break()
            return x.sum(1) + 1 if x.sum() > 0 else x.mean(1)

        fast = self.fast(f)
        same(self, fast(X.abs()), f(X.abs()))
        same(self, fast(-X.abs()), f(-X.abs()))

    def test_what_has_no_row_is_left_to_pytorch(self):
        def f(x):
            return torch.linalg.svdvals(x.tanh() @ x.t()) * 2 + torch.lgamma(x.abs() + 1).sum()

        left = {}
        fast = self.fast(f, eager=lambda name, reason: left.update({name: reason}))
        same(self, fast(X), f(X), 1e-4)
        self.assertIn("lgamma", left)
        model = hone.torch.compile(Of(f), (X,), **OPTIONS)
        same(self, model(X), f(X), 1e-4)
        self.assertIn("lgamma", model.eager)
        with self.assertRaisesRegex(hone.UsageError, "lgamma"):
            model.model
        with self.assertRaisesRegex(hone.Unsupported, "does not take"):
            hone.torch.compile(Of(f), (X,), eager=False, **OPTIONS)

    def test_sizes_that_depend_on_data(self):
        def f(x):
            return x[x > 0].exp().sum() + x.nonzero().shape[0]

        model = hone.torch.compile(Of(f), (X,), **OPTIONS)
        for x in (X, Y):
            same(self, model(x), f(x))

    def test_indices_that_depend_on_data(self):
        def f(x, row):
            return x[row.item()] * 2 + x.sum()

        model = hone.torch.compile(Of(f), (X, torch.tensor(1)), **OPTIONS)
        for row in (1, 3, -1):
            same(self, model(X, torch.tensor(row)), f(X, torch.tensor(row)))

    def test_random_numbers_are_those_of_pytorch(self):
        module = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.ReLU())
        fast = self.fast(module)
        torch.manual_seed(9)
        want = module(X)
        torch.manual_seed(9)
        same(self, fast(X), want)

    def test_types_that_hone_lacks(self):
        def f(x):
            return (torch.view_as_real(torch.fft.rfft(x)) * 2).sum()

        same(self, self.fast(f)(X), f(X), 1e-4)

    def test_changed_arguments(self):
        def f(x):
            x.add_(1)
            return x * 2

        ours, theirs = X.clone(), X.clone()
        same(self, self.fast(f)(ours), f(theirs))
        same(self, ours, theirs)

    def test_numbers_and_views(self):
        def f(x, n, *, scale):
            return x.view(-1)[n:], x.t(), x * scale, n + 1

        fast = self.fast(f)
        for n in (1, 2, 3):
            same(self, fast(X, n, scale=0.5), f(X, n, scale=0.5))

    def test_results_lie_in_memory_as_those_of_pytorch(self):
        channels_last = IMAGE.contiguous(memory_format=torch.channels_last)
        several = nn.Conv2d(4, 3, 3).to(memory_format=torch.channels_last)
        for function, given in (
            (lambda x: (x * 2).t(), X),
            (lambda x: (x + 1).permute(1, 3, 0, 2).relu(), IMAGE),
            (lambda x: x.sum(1, keepdim=True).exp().expand(4, 6), X),
            (several, channels_last),
            (lambda x: torch.lgamma(x.abs() + 1).t() * 2, X),  # PyTorch computes a part
        ):
            want = function(given)
            with torch.no_grad():
                for got in (
                    self.fast(function)(given),
                    hone.torch.compile(Of(function), (given,), **OPTIONS)(given),
                ):
                    same(self, got, want)
                    if 0 not in want.stride():
                        self.assertEqual(got.stride(), want.stride())

    def test_no_grad(self):
        module = nn.Linear(6, 2)
        fast = self.fast(module)
        with torch.no_grad():
            made = fast(X)
        self.assertFalse(made.requires_grad)
        same(self, made, module(X))
        self.assertTrue(fast(X).requires_grad)

    def test_a_constant_of_the_function(self):
        def f(x):
            return x / torch.sqrt(torch.tensor(x.shape[1] * 3)) + torch.tensor([1.0, 2.0]).sum()

        same(self, self.fast(f)(X), f(X))

    def test_a_wrong_option(self):
        with self.assertRaisesRegex(Exception, "colour"):
            self.fast(lambda x: x + 1, colour="red")(X)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(4, 6))

    def forward(self, x, *, row):
        self.count += 1
        self.cache[row] = x
        return {"sum": self.cache.sum(0) * self.count, "pair": (x + 1, None)}


class Exported(unittest.TestCase):
    def test_trees_buffers_and_names(self):
        ours, theirs = State(), State()
        example = {"row": torch.tensor([2])}
        model = hone.torch.compile(ours, (X[0],), example, eager=False, **OPTIONS)
        for row in (2, 0, 1):
            given = {"row": torch.tensor([row])}
            same(self, model(X[row], **given), theirs(X[row], **given))
        with self.assertRaisesRegex(hone.UsageError, "tree"):
            model(X[0], X[1])

    def test_open_sizes(self):
        rows, columns = DIM("rows", min=2), DIM("columns", min=3)
        check(self, lambda x: (x.softmax(1), x.reshape(-1), x.sum(0), x[:, 1:], x.shape[0] * x),
              X, dynamic=(({0: rows, 1: columns},),),
              others=[(reals(7, 3),), (reals(2, 9),)])  # fmt: skip
        check(self, Block(), integers(2, 7, low=0, high=11), tolerance=1e-4,
              dynamic=({0: DIM.DYNAMIC, 1: DIM.DYNAMIC},),
              others=[(integers(3, 5, low=0, high=11),)])  # fmt: skip

    def test_a_file(self):
        module = nn.Linear(6, 3)
        torch.export.save(torch.export.export(module, (X,)), "module.pt2")
        model = hone.torch.load("module.pt2", **OPTIONS)
        same(self, model(X), module(X))
        with open("module.pt2", "rb") as file:
            same(self, hone.torch.load(file.read(), **OPTIONS)(X), module(X))
        model.model.save("module.honec")
        weights = [module.weight.detach().numpy(), module.bias.detach().numpy()]
        again = hone.load("module.honec")(*weights, X.numpy())
        same(self, torch.from_numpy(again), module(X))

    def test_changed_arguments(self):
        def f(x):
            x.mul_(2)
            return x + 1

        model = hone.torch.compile(Of(f), (X,), eager=False, **OPTIONS)
        ours, theirs = X.clone(), X.clone()
        same(self, model(ours), f(theirs))
        same(self, ours, theirs)

    def test_weights_are_read_where_they_lie(self):
        module = nn.Linear(6, 3)
        model = hone.torch.compile(module, (X,), **OPTIONS)
        with torch.no_grad():
            module.weight.mul_(2)
        same(self, model(X), module(X))

    def test_refusals(self):
        with self.assertRaisesRegex(hone.UsageError, "exported program"):
            hone.torch.load(nn.Linear(2, 2))
        with self.assertRaisesRegex(hone.UsageError, "tuple"):
            hone.torch.compile(nn.Linear(6, 3), X)
        model = hone.torch.compile(nn.Linear(6, 3), (X,), **OPTIONS)
        with self.assertRaises(hone.BadInput):
            model(reals(4, 5))
        with self.assertRaises(hone.BadInput):
            model(X.double())


if __name__ == "__main__":
    torch.manual_seed(0)
    unittest.main()
