"""Meshes of devices, and how they divide arrays and values of graphs.

mesh = hone.mesh(batch=2, model=2)
with mesh:
    parts = hone.shard(array, "batch", None)     # parts.part(3) is that of device 3
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._errors import UsageError

_entered: List["Mesh"] = []


class Mesh:
    """A grid of devices with named axes. They are numbered from 0; the last axis counts fastest."""

    def __init__(self, axes: Mapping[str, int]) -> None:
        for name, size in axes.items():
            if not isinstance(size, int) or size < 1:
                raise UsageError(f"the axis '{name}' has a size from 1 on, not {size!r}")
        if not axes:
            raise UsageError("a mesh has an axis: hone.mesh(x=2)")
        self.axes: Dict[str, int] = dict(axes)

    @property
    def devices(self) -> int:
        count = 1
        for size in self.axes.values():
            count *= size
        return count

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes.items())

    def __repr__(self) -> str:
        return f"hone.mesh({', '.join(f'{name}={size}' for name, size in self.axes.items())})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Mesh) and list(self.axes.items()) == list(other.axes.items())
        return bool(same)

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> "Mesh":
        _entered.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _entered.pop()

    def place(self, device: int, axes: Sequence[str]) -> int:
        """The place of the device along these axes together, the first the outermost."""
        stride, places = 1, {}
        for name, size in reversed(list(self.axes.items())):
            places[name] = device // stride % size
            stride *= size
        at = 0
        for name in axes:
            at = at * self.axes[name] + places[name]
        return at


def mesh(**axes: int) -> Mesh:
    """A mesh of devices: hone.mesh(x=2, y=4) has 8 of them."""
    return Mesh(axes)


class Shard:
    """A placement along an axis of a mesh, as DTensor has it: the axis divides this dim."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def __repr__(self) -> str:
        return f"Shard({self.dim})"


class Replicate:
    """A placement along an axis of a mesh: all devices along it have the same."""

    def __repr__(self) -> str:
        return "Replicate()"


def _lists(dims: Sequence[Any], rank: int, on: Mesh) -> List[Tuple[str, ...]]:
    """The axes of each dim, from axes or from placements."""
    lists: List[Tuple[str, ...]] = [() for _ in range(rank)]
    if any(isinstance(one, (Shard, Replicate)) for one in dims):
        if len(dims) != len(on.axes):
            raise UsageError(f"{len(dims)} placements are given, {on!r} has {len(on.axes)} axes")
        for axis, one in zip(on.axes, dims):
            if not isinstance(one, (Shard, Replicate)):
                raise UsageError(f"{one!r} is no placement: hone.Shard(dim) or hone.Replicate()")
            if isinstance(one, Shard):
                if not 0 <= one.dim < rank:
                    raise UsageError(f"{one!r}: there are {rank} dims")
                lists[one.dim] += (axis,)
        return lists
    if len(dims) != rank:
        raise UsageError(f"{len(dims)} dims are said, and there are {rank}")
    for i, one in enumerate(dims):
        lists[i] = () if one is None else (one,) if isinstance(one, str) else tuple(one)
    used = [axis for axes in lists for axis in axes]
    for axis in used:
        if axis not in on.axes:
            raise UsageError(f"{on!r} has no axis '{axis}'")
        if used.count(axis) > 1:
            raise UsageError(f"the axis '{axis}' divides twice")
    return lists


def dims_text(lists: Sequence[Sequence[str]]) -> str:
    return "[" + ", ".join(" ".join(axes) if axes else "-" for axes in lists) + "]"


class ShardedArray:
    """An array in the parts of devices. `part(device)` is a view; the last ones may have less."""

    def __init__(self, array: Any, on: Mesh, lists: Sequence[Sequence[str]]) -> None:
        self.mesh = on
        self.dims: Tuple[Tuple[str, ...], ...] = tuple(tuple(axes) for axes in lists)
        self._array = array

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def placements(self) -> Tuple[Any, ...]:
        """By axis of the mesh, as DTensor has them."""
        made: List[Any] = []
        for axis in self.mesh.axes:
            dim = [i for i, axes in enumerate(self.dims) if axis in axes]
            made.append(Shard(dim[0]) if dim else Replicate())
        return tuple(made)

    def part(self, device: int) -> Any:
        if not 0 <= device < self.mesh.devices:
            raise UsageError(f"{self.mesh!r} has no device {device}")
        index = []
        for size, axes in zip(self.shape, self.dims):
            count = 1
            for axis in axes:
                count *= self.mesh.axes[axis]
            length = -(-size // count)
            first = self.mesh.place(device, axes) * length
            index.append(slice(min(first, size), min(first + length, size)))
        return self._array[tuple(index)]

    def whole(self) -> Any:
        return self._array

    def __repr__(self) -> str:
        return f"<ShardedArray {self.shape} {dims_text(self.dims)} on {self.mesh!r}>"


def shard(x: Any, /, *dims: Any, mesh: Optional[Mesh] = None, **values: Sequence[Any]) -> Any:
    """Says how a value is divided: hone.shard(x, "batch", None). No number changes.

    x        an array, of which a ShardedArray is returned; a value of a graph that is built, which
             is returned; or a hone.graph.Graph: hone.shard(graph, x=("batch", None)) returns one
             that says it of its value x
    dims     for each dim the axis that divides it, several of them, or None; or for each axis of
             the mesh a placement: hone.Shard(dim) or hone.Replicate()
    mesh     by default the one of the innermost `with mesh:`
    """
    on = mesh if mesh is not None else _entered[-1] if _entered else None
    if on is None:
        raise UsageError("no mesh is said: 'with hone.mesh(x=2):', or mesh=")
    if hasattr(x, "sharded"):
        if dims:
            raise UsageError("a graph has many values: hone.shard(graph, NAME=(axis, ...))")
        lists = {name: dims_text(_lists(one, len(one), on)) for name, one in values.items()}
        return x.sharded(str(on), lists)
    if values:
        raise UsageError(f"'{next(iter(values))}': names are of the values of a graph")
    if hasattr(x, "say_sharding"):
        x.say_sharding(str(on), dims_text(_lists(dims, len(x.shape), on)))
        return x
    if not hasattr(x, "__getitem__") or not hasattr(x, "shape"):
        raise UsageError(f"{type(x).__name__} is no array")
    return ShardedArray(x, on, _lists(dims, len(x.shape), on))
