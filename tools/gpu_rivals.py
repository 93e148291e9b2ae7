"""tools/gpu_rivals.py torch|jax: times products on a GPU, the types and shapes of tools/gpu.sh.

The median of runs, each of which ends with a wait. Inputs are random: zeros take less power.
"""

import statistics
import sys
import time

PRODUCTS = [
    ("float32", 1024, 1024, 1024),
    ("float32", 4096, 4096, 4096),
    ("float32", 128, 768, 3072),
    ("float32", 1, 768, 3072),
    ("bfloat16", 1024, 1024, 1024),
    ("bfloat16", 4096, 4096, 4096),
    ("bfloat16", 8192, 8192, 8192),
    ("bfloat16", 128, 768, 3072),
]
RUNS = 50


def timed(run):
    """Median seconds of a run."""
    for _ in range(5):
        run()
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def torch_product(dtype, m, n, k):
    """A product as one graph, which a run replays."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    kind = getattr(torch, dtype)
    a = torch.randn(m, k, device="cuda", dtype=kind)
    b = torch.randn(n, k, device="cuda", dtype=kind).t()
    torch.matmul(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.matmul(a, b)

    def run():
        graph.replay()
        torch.cuda.synchronize()

    return run


def jax_product(dtype, m, n, k):
    """A product as XLA compiles it."""
    import jax

    if jax.default_backend() != "gpu":
        sys.exit("jax has no GPU here")
    key = jax.random.PRNGKey(0)
    a, b = jax.random.normal(key, (m, k), dtype), jax.random.normal(key, (n, k), dtype)
    product = jax.jit(lambda x, y: jax.numpy.matmul(x, y.T, precision="highest"))
    return lambda: product(a, b).block_until_ready()


def main():
    """Prints a line for each shape."""
    make = {"torch": torch_product, "jax": jax_product}[sys.argv[1]]
    for dtype, m, n, k in PRODUCTS:
        seconds = timed(make(dtype, m, n, k))
        flops = 2 * m * n * k
        print(dtype, m, n, k, f"{seconds * 1e6:.1f} us, {flops / seconds * 1e-12:.2f} TFLOP/s")


main()
