"""tools/gpu_rivals.py torch|jax [cpu]: figures of a rival, for tools/gpu.sh.

Reads questions from the standard input, a line each, and answers each with a line of medians:

    model NAME BATCH TYPE      a model of the zoo, with random weights
    product TYPE M N K         a product by rows of weights
    kernel NAME ROWS COLUMNS   a kernel that memory bounds; copy: what it is measured against

Each run ends with a wait. Inputs are random: zeros take less power. `cpu` is for trying it out.
"""

import contextlib
import statistics
import sys
import time

RUNS, SECONDS = 50, 0.3
CPU = "cpu" in sys.argv[2:]


def timed(run):
    """Median seconds of a run."""
    for _ in range(3):
        run()
    seconds, begin = [], time.perf_counter()
    while len(seconds) < RUNS and time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def text(seconds):
    """As hone writes times."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            break
    return f"{seconds * factor:.4g} {unit}"


# ---- torch ---------------------------------------------------------------------------------------


def torch_transformer(name, batch):
    """bert_base, gpt2 and gpt2_decode: 12 layers of width 768, of torch's own fused attention."""
    import torch
    import torch.nn.functional as F

    width, heads, depth = 768, 12, 12
    is_decode, is_causal = name == "gpt2_decode", name != "bert_base"
    length, words = {"bert_base": (128, 30522), "gpt2": (64, 50257), "gpt2_decode": (1, 50257)}[name]
    past = 256 if is_decode else 0

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.out = torch.nn.Linear(width, width)
            self.up = torch.nn.Linear(width, 4 * width)
            self.down = torch.nn.Linear(4 * width, width)

        def forward(self, x, keys, values):
            y = self.norms[0](x) if is_causal else x
            q, k, v = (
                part.view(batch, length, heads, -1).transpose(1, 2)
                for part in self.qkv(y).chunk(3, -1)
            )
            if keys is not None:
                k, v = torch.cat((keys, k), 2), torch.cat((values, v), 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal and not is_decode)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            if not is_causal:
                x = self.norms[0](x)
            y = self.norms[1](x) if is_causal else x
            x = x + self.down(F.gelu(self.up(y)))
            return x if is_causal else self.norms[1](x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(words, width)
            self.places = torch.nn.Embedding(1024, width)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(depth))
            self.norm = torch.nn.LayerNorm(width)

        def forward(self, tokens, *caches):
            x = self.words(tokens) + self.places.weight[past : past + length]
            for i, layer in enumerate(self.layers):
                x = layer(x, *(caches[2 * i : 2 * i + 2] if is_decode else (None, None)))
            return self.norm(x) @ self.words.weight.t() if is_causal else x

    shape = (batch, heads, past, width // heads)
    caches = [torch.randn(shape) for _ in range(2 * depth)] if is_decode else []
    return Net(), [torch.randint(0, words, (batch, length)), *caches]


def torch_unet(batch):
    """The first U-Net: convs without padding, and crops across."""
    import torch

    def convs(before, after):
        return torch.nn.Sequential(
            torch.nn.Conv2d(before, after, 3),
            torch.nn.ReLU(),
            torch.nn.Conv2d(after, after, 3),
            torch.nn.ReLU(),
        )

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [64, 128, 256, 512, 1024]
            self.down = torch.nn.ModuleList(map(convs, [1, *widths[:-1]], widths))
            self.wider = torch.nn.ModuleList(
                torch.nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1]
            )
            self.up = torch.nn.ModuleList(convs(2 * w, w) for w in widths[-2::-1])
            self.last = torch.nn.Conv2d(64, 2, 1)

        def forward(self, x):
            across = []
            for i, level in enumerate(self.down):
                x = level(torch.nn.functional.max_pool2d(x, 2) if i else x)
                across.append(x)
            for wider, level, other in zip(self.wider, self.up, across[-2::-1]):
                x = wider(x)
                rim = (other.shape[2] - x.shape[2]) // 2
                other = other[:, :, rim : rim + x.shape[2], rim : rim + x.shape[3]]
                x = level(torch.cat((other, x), 1))
            return self.last(x)

    return Net(), [torch.randn(batch, 1, 572, 572)]


def torch_model(name, batch):
    """The module and its inputs."""
    import torch

    if name == "unet":
        return torch_unet(batch)
    if name.startswith(("bert", "gpt2")):
        return torch_transformer(name, batch)
    import torchvision

    net = getattr(torchvision.models, {"vit_b16": "vit_b_16"}.get(name, name))(weights=None)
    if name == "vit_b16":  # its last layer begins as zeros
        torch.nn.init.normal_(net.heads.head.weight)
    return net, [torch.randn(batch, 3, 224, 224)]


class Torch:
    """Eager and compiled, alone and as a CUDA graph."""

    def __init__(self):
        import torch

        self.torch = torch
        self.device = "cpu" if CPU else "cuda"
        if not CPU and not torch.cuda.is_available():
            sys.exit("torch has no GPU here")

    def take_type(self, kind):
        """The type of numbers; products of f32 are in tf32 where that is asked for."""
        is_tf32 = kind == "tf32"
        self.torch.backends.cuda.matmul.allow_tf32 = is_tf32
        self.torch.backends.cudnn.allow_tf32 = is_tf32
        torch = self.torch
        return {"bf16": torch.bfloat16, "f16": torch.float16}.get(kind, torch.float32)

    def wait(self):
        if not CPU:
            self.torch.cuda.synchronize()

    def times(self, function, inputs):
        """Of the function alone, and of a graph of it."""

        def alone():
            function(*inputs)
            self.wait()

        found = [text(timed(alone))]
        if CPU:
            return found
        side = self.torch.cuda.Stream()
        with self.torch.cuda.stream(side):
            for _ in range(3):
                function(*inputs)
        self.wait()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            function(*inputs)

        def replayed():
            graph.replay()
            self.wait()

        return [*found, text(timed(replayed))]

    def model(self, name, batch, kind):
        dtype = self.take_type(kind)
        net, inputs = torch_model(name, int(batch))
        net = net.eval().to(self.device, dtype)
        inputs = [
            x.to(self.device, dtype) if x.is_floating_point() else x.to(self.device) for x in inputs
        ]
        eager = self.times(net, inputs)
        said = f"eager {eager[0]}" + (f", in a graph {eager[1]}" if len(eager) > 1 else "")
        if CPU:
            return said
        with contextlib.suppress(Exception):  # what it does not compile
            found = self.times(self.torch.compile(net), inputs)
            said += f", compiled {found[0]}, in a graph {found[1]}"
        return said

    def product(self, kind, m, n, k):
        dtype = self.take_type(kind)
        m, n, k = int(m), int(n), int(k)
        a = self.torch.randn(m, k, device=self.device).to(dtype)
        b = self.torch.randn(n, k, device=self.device).to(dtype).t()
        return self.times(self.torch.matmul, (a, b))[-1]

    def kernel(self, name, rows, columns):
        torch, F = self.torch, self.torch.nn.functional
        x = torch.randn(int(rows), int(columns), device=self.device)
        function = {
            "copy": torch.clone,
            "exp": torch.exp,
            "gelu": F.gelu,
            "softmax": lambda x: torch.softmax(x, 1),
            "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
            "transpose": lambda x: x.t().contiguous(),
            "sum_rows": lambda x: x.sum(1),
            "sum_columns": lambda x: x.sum(0),
        }[name]
        return self.times(function, (x,))[-1]


# ---- jax -----------------------------------------------------------------------------------------


class Jax:
    """As XLA compiles it."""

    def __init__(self):
        import jax

        self.jax = jax
        if not CPU and jax.default_backend() != "gpu":
            sys.exit("jax has no GPU here")

    def times(self, function, *inputs):
        compiled = self.jax.jit(function)
        return text(timed(lambda: self.jax.block_until_ready(compiled(*inputs))))

    def random(self, *shape, kind="f32"):
        dtype = {"bf16": "bfloat16", "f16": "float16"}.get(kind, "float32")
        return self.jax.random.normal(self.jax.random.PRNGKey(0), shape, dtype)

    def model(self, name, batch, kind):
        """The layers of bert_base and gpt2; it has no others."""
        if name not in ("bert_base", "gpt2"):
            return "has no such model"
        jax, np = self.jax, self.jax.numpy
        batch, length, width, heads = int(batch), 128 if name == "bert_base" else 64, 768, 12
        precision = "default" if kind == "tf32" else "highest"
        layers = [
            [self.random(a * width, b * width, kind=kind) * 0.02 for a, b in
             ((1, 3), (1, 1), (1, 4), (4, 1))] for _ in range(12)
        ]  # fmt: skip

        def norm(x):
            return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

        def run(x, layers):
            for qkv, out, up, down in layers:
                parts = np.split(np.matmul(norm(x), qkv, precision=precision), 3, -1)
                q, k, v = (p.reshape(batch, length, heads, -1) for p in parts)
                y = jax.nn.dot_product_attention(q, k, v, is_causal=name == "gpt2")
                x = x + np.matmul(y.reshape(x.shape), out, precision=precision)
                y = jax.nn.gelu(np.matmul(norm(x), up, precision=precision))
                x = x + np.matmul(y, down, precision=precision)
            return x

        return self.times(run, self.random(batch, length, width, kind=kind), layers) + ", layers"

    def product(self, kind, m, n, k):
        precision = "default" if kind == "tf32" else "highest"
        a, b = self.random(int(m), int(k), kind=kind), self.random(int(n), int(k), kind=kind)
        return self.times(
            lambda x, y: self.jax.numpy.matmul(x, y.T, precision=precision), a, b
        )

    def kernel(self, name, rows, columns):
        np, nn = self.jax.numpy, self.jax.nn
        x = self.random(int(rows), int(columns))
        function = {
            "copy": lambda x: x + 0,
            "exp": np.exp,
            "gelu": nn.gelu,
            "softmax": lambda x: nn.softmax(x, 1),
            "layer_norm": lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
            "transpose": lambda x: x.T + 0,
            "sum_rows": lambda x: x.sum(1),
            "sum_columns": lambda x: x.sum(0),
        }[name]
        return self.times(function, x)


def main():
    """Answers until the input ends."""
    rival = {"torch": Torch, "jax": Jax}[sys.argv[1]]()
    for line in sys.stdin:
        what, *words = line.split()
        try:
            answer = getattr(rival, what)(*words)
        except Exception as error:  # pylint: disable=broad-except  # the next question follows
            answer = f"fails: {type(error).__name__} {str(error).splitlines()[:1]}"
        print(answer, flush=True)


main()
