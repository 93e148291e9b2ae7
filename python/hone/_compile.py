"""From models to what runs."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ._errors import UsageError
from ._model import Model, load_compiled
from ._progress import Progress, hearing
from ._shard import Mesh, sharding_text

if TYPE_CHECKING:
    from ._compiler import Graph
    from ._tune import Cost

Source = Union[str, "os.PathLike[str]", bytes, "Graph"]


def _folder(variable: str, below_home: str) -> Optional[str]:
    """As the XDG base directory specification says: a path that is not absolute does not count."""
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return os.path.join(named, "hone")
    home = os.environ.get("HOME", "")
    return os.path.join(home, below_home, "hone") if home.startswith("/") else None


def default_cache() -> Optional[str]:
    """The folder that keeps what was compiled, as the command line has it."""
    return _folder("XDG_CACHE_HOME", ".cache")


def cache_folder(cache: Any) -> Optional[str]:
    """The folder that an option `cache` means."""
    return default_cache() if cache is True else os.fspath(cache) if cache else None


def default_log() -> Optional[str]:
    """The file that keeps what was measured, as the command line has it."""
    named = os.environ.get("HONE_LOG")
    if named:
        return named
    folder = _folder("XDG_DATA_HOME", ".local/share")
    return os.path.join(folder, "log.db") if folder else None


def default_prices() -> Tuple[Optional[str], bool]:
    """The folder of fitted and learned prices, and whether those that hone ships count, too."""
    named = os.environ.get("HONE_PRICES")
    if named:
        return named, False
    folder = _folder("XDG_DATA_HOME", ".local/share")
    return os.path.join(folder, "prices") if folder else None, True


def request(
    source: Source,
    sizes: Optional[Mapping[str, int]],
    shapes: Optional[Mapping[str, Sequence[int]]],
    threads: Optional[int],
    isa: Optional[str],
    cache: Any,
    log: Any,
) -> Dict[str, Any]:
    """What _compiler takes of the options that all have."""
    from . import _compiler

    prices, takes_shipped = default_prices()
    return {
        "source": source if isinstance(source, (bytes, _compiler.Graph)) else os.fspath(source),
        "sizes": None if sizes is None else dict(sizes),
        "shapes": None if shapes is None else {name: list(dims) for name, dims in shapes.items()},
        "threads": threads,
        "isa": isa,
        "cache": cache_folder(cache),
        "log": default_log() if log is True else os.fspath(log) if log else None,
        "prices": prices,
        "takes_shipped": takes_shipped,
    }


def _listed(devices: Union[int, str, Sequence[str], None]) -> Optional[str]:
    if devices is None or isinstance(devices, str):
        return devices
    return str(devices) if isinstance(devices, int) else ",".join(devices)


# For each value the axes of each dim: one, several, or None; or "[x, -]".
DividedValues = Mapping[str, Union[str, Sequence[Union[str, Sequence[str], None]]]]


def _said(
    shard: Union[str, os.PathLike[str], DividedValues, None], mesh: Union[Mesh, str, None]
) -> Optional[List[str]]:
    if shard is None:
        return None
    if isinstance(shard, (str, os.PathLike)):
        return [os.fspath(shard)]
    if not isinstance(shard, Mapping):
        raise UsageError(
            f"shard is 'auto', the path of a plan, or {{'x': ('batch', None)}}, and not of type "
            f"{type(shard).__name__}"
        )
    on = mesh if isinstance(mesh, Mesh) else None
    return [f"{name}={sharding_text(one, on)}" for name, one in shard.items()]


def _mesh_text(mesh: Union[Mesh, str, None]) -> Optional[str]:
    if mesh is None or isinstance(mesh, (Mesh, str)):
        return None if mesh is None else str(mesh)
    raise UsageError(f"mesh is hone.mesh(x=2) or 'x=2', and not of type {type(mesh).__name__}")


def _bytes_text(memory: Union[int, str, None]) -> Optional[str]:
    return None if memory is None else str(memory)


def compile(
    source: Source,
    *,
    sizes: Optional[Mapping[str, int]] = None,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    threads: Optional[int] = None,
    devices: Union[int, str, Sequence[str], None] = None,
    batch: Union[str, Sequence[str], None] = None,
    mesh: Union[Mesh, str, None] = None,
    shard: Union[str, os.PathLike[str], DividedValues, None] = None,
    memory: Union[int, str, None] = None,
    budget: Optional[float] = None,
    donate: Optional[Mapping[str, str]] = None,
    plan: Optional[str] = None,
    cost: Union[Cost, str, None] = None,
    isa: Optional[str] = None,
    cache: Any = True,
    log: Any = True,
    output: Union[str, os.PathLike[str], None] = None,
    quick_start: Optional[bool] = None,
    progress: Union[Callable[[Progress], None], bool, None] = None,
) -> Model:
    """Compiles a model: a path (.onnx, .hone), "zoo:NAME", the bytes of such a file, or a Graph.

    sizes    numbers for open sizes: {"N": 4}
    shapes   the same by input: {"x": (4, 3, 224, 224)}
    threads  that work on a kernel; by default all cores, or each device's share of them
    devices  that divide the batch: a number of parts of this machine, or ["cpu", "cpu"];
             or one GPU: "cuda" or "cuda:1"; or both: ["cuda:0", "cpu"] (docs/gpu.md)
    batch    the inputs that have the batch, along dim 0, or "x:1": along dim 1; by default the
             first one that has a dim, and those with the same dim 0
    mesh     devices as a grid that divides values, and not the batch alone: hone.mesh(x=2, y=2).
             The graph, or a plan, may say its own
    shard    "auto": how values are divided is chosen by price; the path of a plan of 'hone shard';
             or {"x": ("batch", None)}, as hone.shard() says it. With a mesh alone: what the graph
             says, or else "auto"
    memory   that a device of the mesh may use: "16GiB", or bytes
    budget   seconds for the search of how values are divided, where prices choose it; default: 10
    donate   {"past": "present"}: output "present" may lie in the memory of input "past", which runs
             then may give up: model(..., donate="past")
    plan     how, as text: what it leaves open the planner decides
    cost     by which the planner chooses: a Cost; None: the prices that were learned or fitted
             on this machine, or come with hone; "analytic": without those that were learned;
             "default": without any of them; "learned", or the file of a model
    isa      of at most this level: "x86-64-v2", "avx2", "avx512"
    cache    a folder that keeps what was compiled; True: the user's own, None: none
    log      measurements whose best plans count; True: the user's own, None: none
    quick_start  runs begin on code that is compiled quickly, and go on with the real code when a
             thread has made it (Model.finish()); both compute the same bits. None: where the
             first outputs come sooner so
    output   a file to write, too: .honec, or what else Model.save() takes
    progress gets a Progress now and then; None: a bar if it takes long, False: nothing

    Sizes that stay open are those of the inputs of each run; then code is made when they are met.
    """
    from . import _compiler

    given = request(source, sizes, shapes, threads, isa, cache, log)
    given.update(plan=plan, cost=cost, quick_start=quick_start)
    given.update(donate=None if donate is None else dict(donate))
    given.update(devices=_listed(devices), batch=[batch] if isinstance(batch, str) else batch)
    given.update(mesh=_mesh_text(mesh), shard=_said(shard, mesh))
    given.update(memory=_bytes_text(memory), budget=budget)
    if given["log"] is not None and not os.path.exists(given["log"]):
        given["log"] = None
    with hearing(progress) as hears:
        compiled = _compiler.compile(given, hears)
    if output is not None:
        compiled.save(os.fspath(output))
    model = Model(compiled.name, compiled.core, compiled)
    _making.add(model)
    return model


# A thread that makes code must not go on while the process takes itself down.
_making: "weakref.WeakSet[Model]" = weakref.WeakSet()


@atexit.register
def _stop() -> None:
    for model in list(_making):
        model._stop()


def _begins_compiled(path: str) -> bool:
    from . import _runtime

    if not os.path.isfile(path):  # a model of the zoo
        return False
    with open(path, "rb") as file:
        return _runtime.is_compiled(file.read(64))


def load(
    source: Source,
    *,
    threads: Optional[int] = None,
    verify: bool = False,
    device: Optional[str] = None,
    cache: Any = True,
    **options: Any,
) -> Model:
    """Loads a model, ready to run: a compiled one (.honec), or any that compile() takes.

    verify   reads all weights of a compiled model, and checks them
    device   "cuda" or "cuda:1": a GPU that runs it (docs/gpu.md)
    cache    a folder that keeps what was compiled, a GPU's code of a compiled model as well; True:
             the user's own, None: none
    The other options are those of compile(); a compiled model takes none of them.
    """
    from . import _runtime

    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if isinstance(source, bytes) and _runtime.is_compiled(source):
        held: Union[str, bytes] = source
    elif path is not None and (path.endswith(".honec") or _begins_compiled(path)):
        held = path
    else:
        if device is not None:
            if options.get("devices") is not None:
                raise UsageError("device and devices both say what runs the model")
            options["devices"] = device
        return compile(source, threads=threads, cache=cache, **options)
    if options:
        raise UsageError(f"{', '.join(options)}: for models that are not compiled yet")
    return load_compiled(held, threads, verify, device, cache_folder(cache))
