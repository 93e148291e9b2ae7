"""Meshes of devices, and how they divide arrays and values of graphs.

mesh = hone.mesh(batch=2, model=2)
with mesh:
    parts = hone.shard(array, "batch", None)     # parts.part(3) is that of device 3
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ._errors import UsageError

_entered: List["Mesh"] = []


class _Part(NamedTuple):
    """An axis, or "y:(2)2": the axis is a grid of before x size x rest."""

    axis: str
    before: int
    size: int


def _is_plain(axis: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", axis) is not None


def _named(axis: str) -> str:
    """The name as texts have it: in quotes, if it has other characters than words have."""
    return axis if _is_plain(axis) and axis not in ("open", "priority") else json.dumps(axis)


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
        return ",".join(f"{_named(name)}={size}" for name, size in self.axes.items())

    def __repr__(self) -> str:
        if not all(_is_plain(name) for name in self.axes):
            return f"hone.Mesh({self.axes!r})"
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
        """The place of the device along these axes or parts of axes, the first the outermost."""
        stride, places = 1, {}
        for name, size in reversed(list(self.axes.items())):
            places[name] = device // stride % size
            stride *= size
        at = 0
        for one in axes:
            part = self._part(one)
            rest = self.axes[part.axis] // (part.before * part.size)
            at = at * part.size + places[part.axis] // rest % part.size
        return at

    def _part(self, text: str) -> _Part:
        """Of "y", of "y:(2)2", or of a name in quotes."""
        if text in self.axes:
            return _Part(text, 1, self.axes[text])
        found = re.fullmatch(r'("(?:[^"\\]|\\.)*"|[^:]*)(?::\((\d+)\)(\d+))?', text)
        if found is None:
            raise UsageError(f"'{text}' is no axis, and no part of one, such as x:(1)2")
        axis = json.loads(found[1]) if found[1].startswith('"') else found[1]
        if axis not in self.axes:
            raise UsageError(f"{self!r} has no axis '{axis}'")
        if found[2] is None:
            return _Part(axis, 1, self.axes[axis])
        before, size = int(found[2]), int(found[3])
        if before * size == 0 or self.axes[axis] % (before * size):
            raise UsageError(f"the axis '{axis}' of size {self.axes[axis]} has no part {text}")
        return _Part(axis, before, size)


def mesh(**axes: int) -> Mesh:
    """A mesh of devices: hone.mesh(x=2, y=4) has 8 of them."""
    return Mesh(axes)


class Shard:
    """A placement along an axis of a mesh, as DTensor has it: the axis divides this dim. Dims below
    0 count from the last one."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def __repr__(self) -> str:
        return f"Shard({self.dim})"


class Replicate:
    """A placement along an axis of a mesh: all devices along it have the same."""

    def __repr__(self) -> str:
        return "Replicate()"


class Partial:
    """A placement along an axis of a mesh: the value is the sum of what the devices along it have,
    or their "max" or "min". It is for values of graphs: an array has all its elements."""

    def __init__(self, op: str = "sum") -> None:
        if op not in ("sum", "max", "min"):
            raise UsageError(f"a partial value is a sum, max or min, and not {op!r}")
        self.op = op

    def __repr__(self) -> str:
        return "Partial()" if self.op == "sum" else f"Partial({self.op!r})"


_Placement = (Shard, Replicate, Partial)


def _text_of_placements(said: Sequence[Any], rank: int, on: Mesh) -> str:
    if len(said) != len(on.axes):
        raise UsageError(f"{len(said)} placements are given, {on!r} has {len(on.axes)} axes")
    lists: List[List[str]] = [[] for _ in range(rank)]
    partial: Dict[str, List[str]] = {}
    for axis, one in zip(on.axes, said):
        if not isinstance(one, _Placement):
            raise UsageError(
                f"{one!r} is no placement: hone.Shard(dim), hone.Replicate() or hone.Partial()"
            )
        if isinstance(one, Partial):
            partial.setdefault(one.op, []).append(_named(axis))
        if isinstance(one, Shard):
            if not -rank <= one.dim < rank:
                raise UsageError(f"{one!r}: there are {rank} dims")
            lists[one.dim].append(_named(axis))
    if len(partial) > 1:
        raise UsageError("a value is partial in one way: a sum, max or min")
    text = "[" + ", ".join(" ".join(axes) or "-" for axes in lists) + "]"
    return text + "".join(f" partial {op} [{', '.join(axes)}]" for op, axes in partial.items())


def _dim_text(one: Any, on: Optional[Mesh]) -> str:
    if one is None:
        return "-"
    axes = [one] if isinstance(one, str) else one
    if not isinstance(axes, Sequence) or not all(isinstance(axis, str) for axis in axes):
        raise UsageError(f"{one!r} is no axis: a dim has a name, several, or None")
    return " ".join(_named(a) if on is not None and a in on.axes else a for a in axes) or "-"


def sharding_text(said: Any, on: Optional[Mesh] = None, rank: Optional[int] = None) -> str:
    """What somebody says of a value as the text of a sharding: "[x, -] replicated [y]".

    It is such a text itself, or for each dim an axis, several of them, or None, or for each axis of
    the mesh a placement. An axis may be any text that a dim has: "x:(1)2", "x open priority 1".
    """
    if isinstance(said, str):
        if not said.lstrip().startswith("["):
            raise UsageError(f"{said!r} is no sharding: '[x, -]', or a tuple such as ('x', None)")
        return said
    if not isinstance(said, Sequence):
        raise UsageError(f"{said!r} is no sharding: '[x, -]', or a tuple such as ('x', None)")
    if len(said) == 1 and isinstance(said[0], str) and said[0].lstrip().startswith("["):
        return said[0]
    if any(isinstance(one, _Placement) for one in said):
        if on is None or rank is None:
            raise UsageError("placements are for arrays and graphs: name the axes of each dim")
        return _text_of_placements(said, rank, on)
    if rank is not None and len(said) != rank:
        raise UsageError(f"{len(said)} dims are said, and there are {rank}")
    return "[" + ", ".join(_dim_text(one, on) for one in said) + "]"


_SIGN = r'"(?:[^"\\]|\\.)*"|[^\s",\]]'  # of a word: quotes and what they hold are one


def _parts_of(text: str, rank: int, on: Mesh) -> List[Tuple[str, ...]]:
    """The axes of each dim of an array, checked."""
    found = re.fullmatch(rf"\s*\[((?:\s|,|{_SIGN})*)\]\s*(.*)", text, re.DOTALL)
    if found is None:
        raise UsageError(f"'{text}' is no sharding: '[x, -]'")
    if found[2]:
        raise UsageError(f"an array has all its elements: '{found[2]}' is for values of graphs")
    dims: List[List[str]] = [[]] if found[1].strip() else []
    for word in re.findall(rf"(?:{_SIGN})+|,", found[1]):
        if word == ",":
            dims.append([])
        elif word in ("open", "priority"):
            raise UsageError(f"the division of an array is complete: '{word}' is for graphs")
        elif word != "-":
            dims[-1].append(word)
    if len(dims) != rank:
        raise UsageError(f"{len(dims)} dims are said, and there are {rank}")
    taken: List[_Part] = []
    for one in (on._part(word) for axes in dims for word in axes):
        for other in taken:
            ends = (one.before * one.size, other.before * other.size)
            if one.axis == other.axis and other.before % ends[0] and one.before % ends[1]:
                raise UsageError(f"the axis '{one.axis}' divides twice")
        taken.append(one)
    return [tuple(axes) for axes in dims]


class ShardedArray:
    """An array in the parts of devices. `part(device)` is a view; the last ones may have less.
    Compiled models take it as the whole array that it is."""

    def __init__(self, array: Any, on: Mesh, lists: Sequence[Sequence[str]]) -> None:
        self.mesh = on
        self.dims: Tuple[Tuple[str, ...], ...] = tuple(tuple(axes) for axes in lists)
        self._array = array

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def placements(self) -> Tuple[Any, ...]:
        """By axis of the mesh, as DTensor has them: axes of one dim in the order of the mesh."""
        made: List[Any] = [Replicate() for _ in self.mesh.axes]
        order = list(self.mesh.axes)
        for i, axes in enumerate(self.dims):
            parts = [self.mesh._part(one) for one in axes]
            places = [order.index(part.axis) for part in parts]
            is_whole = all(part.size == self.mesh.axes[part.axis] for part in parts)
            if places != sorted(places) or not is_whole:
                raise UsageError(
                    f"dim {i} is divided by {' '.join(axes)}: placements have whole axes, "
                    f"in the order {', '.join(order)}"
                )
            for place in places:
                made[place] = Shard(i)
        return tuple(made)

    def part(self, device: int) -> Any:
        if not 0 <= device < self.mesh.devices:
            raise UsageError(f"{self.mesh!r} has no device {device}")
        index = []
        for size, axes in zip(self.shape, self.dims):
            count = 1
            for one in axes:
                count *= self.mesh._part(one).size
            length = -(-size // count)
            first = self.mesh.place(device, axes) * length
            index.append(slice(min(first, size), min(first + length, size)))
        return self._array[tuple(index)]

    def whole(self) -> Any:
        return self._array

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        import numpy

        if copy:
            return numpy.array(self._array, dtype=dtype)
        made = numpy.asarray(self._array, dtype=dtype)
        if copy is False and made is not self._array:
            raise ValueError("the array cannot be had without a copy")
        return made

    def __repr__(self) -> str:
        return f"<ShardedArray {self.shape} {sharding_text(self.dims, self.mesh)} on {self.mesh!r}>"


def shard(x: Any, /, *dims: Any, mesh: Optional[Mesh] = None, **values: Any) -> Any:
    """Says how a value is divided: hone.shard(x, "batch", None). No number changes.

    x        an array, of which a ShardedArray is returned; a value of a graph that is built, which
             is returned; or a hone.graph.Graph: hone.shard(graph, x=("batch", None)) returns one
             that says it of its value x
    dims     for each dim the axis that divides it, several of them, or None; or for each axis of
             the mesh a placement: hone.Shard(dim), hone.Replicate() or hone.Partial(). An axis may
             be a part of one, "y:(2)2". Of values of graphs, a dim may be "x open priority 1", and
             one text may say all: "[x, open] replicated [y]"
    mesh     by default the one of the innermost `with mesh:`
    """
    on = mesh if mesh is not None else _entered[-1] if _entered else None
    if on is None:
        raise UsageError("no mesh is said: 'with hone.mesh(x=2):', or mesh=")
    if not isinstance(on, Mesh):
        raise UsageError(f"mesh is hone.mesh(x=2), and not of type {type(on).__name__}")
    if hasattr(x, "sharded"):
        if dims:
            raise UsageError("a graph has many values: hone.shard(graph, NAME=(axis, ...))")
        texts = {name: sharding_text(one, on, len(x.shape(name))) for name, one in values.items()}
        return x.sharded(str(on), texts)
    if values:
        raise UsageError(f"'{next(iter(values))}': names are of the values of a graph")
    if hasattr(x, "say_sharding"):
        x.say_sharding(str(on), sharding_text(dims, on, len(x.shape)))
        return x
    if not hasattr(x, "__getitem__") or not hasattr(x, "shape"):
        raise UsageError(f"{type(x).__name__} is no array")
    rank = len(x.shape)
    return ShardedArray(x, on, _parts_of(sharding_text(dims, on, rank), rank, on))
