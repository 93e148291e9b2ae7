"""tools/gpu_rivals.py torch|jax: times products on a GPU, in f32, the shapes of tools/gpu.sh.

The median of runs, each of which ends with a wait. Inputs are random: zeros take less power.
"""

import statistics
import sys
import time

SHAPES = [(1024, 1024, 1024), (4096, 4096, 4096), (128, 768, 3072), (1, 768, 3072)]
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


def torch_product(m, n, k):
    """A product as one graph, which a run replays."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    torch.matmul(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.matmul(a, b)

    def run():
        graph.replay()
        torch.cuda.synchronize()

    return run


def jax_product(m, n, k):
    """A product as XLA compiles it."""
    import jax

    if jax.default_backend() != "gpu":
        sys.exit("jax has no GPU here")
    key = jax.random.PRNGKey(0)
    a, b = jax.random.normal(key, (m, k)), jax.random.normal(key, (k, n))
    product = jax.jit(lambda x, y: jax.numpy.matmul(x, y, precision="highest"))
    return lambda: product(a, b).block_until_ready()


def main():
    """Prints a line for each shape."""
    make = {"torch": torch_product, "jax": jax_product}[sys.argv[1]]
    for shape in SHAPES:
        seconds = timed(make(*shape))
        flops = 2 * shape[0] * shape[1] * shape[2]
        print(*shape, f"{seconds * 1e6:.1f} us, {flops / seconds * 1e-12:.2f} TFLOP/s")


main()
