"""hone: compiles models for this machine, and runs them.

    model = hone.load("model.onnx")      # or .hone, .honec, "zoo:NAME"
    y = model(x)                         # arrays of numpy, or what speaks DLPack

docs/python.md is the manual. Importing it loads the runtime alone; the compiler is loaded when
something is first compiled.
"""

from ._compile import compile, default_cache, default_log, load
from ._errors import (
    BadInput,
    Error,
    InternalError,
    Interrupted,
    LimitError,
    Mismatch,
    Unsupported,
    UsageError,
)
from ._jax import JaxFunction, jax
from ._language import Embedder, LanguageModel, Text
from ._model import Bound, Model, Port
from ._progress import Progress
from ._report import Report, report
from ._runtime import __version__
from ._shard import Mesh, Partial, Replicate, Shard, ShardedArray, mesh, shard
from ._tune import Cost, Search, Tuned, tune
from ._session import (
    ExecutionMode,
    GraphOptimizationLevel,
    InferenceSession,
    NodeArg,
    RunOptions,
    SessionOptions,
    get_available_providers,
    get_device,
)

__all__ = [
    "BadInput", "Bound", "Cost", "Embedder", "Error", "ExecutionMode", "GraphOptimizationLevel",
    "InferenceSession", "InternalError", "Interrupted", "JaxFunction", "LanguageModel",
    "LimitError", "Mesh", "Mismatch", "Model", "NodeArg", "Partial", "Port", "Progress", "Replicate", "Report",
    "RunOptions", "Search", "SessionOptions", "Shard", "ShardedArray", "Text", "Tuned",
    "Unsupported", "UsageError", "__version__", "compile", "default_cache", "default_log",
    "get_available_providers", "get_device", "graph", "jax", "load", "mesh", "report", "shard",
    "tune",
]  # fmt: skip


def __getattr__(name: str) -> object:  # loaded when asked for: the compiler, and PyTorch
    if name not in ("graph", "torch"):
        raise AttributeError(f"module 'hone' has no attribute '{name}'")
    import importlib

    return importlib.import_module(f"hone.{name}")
