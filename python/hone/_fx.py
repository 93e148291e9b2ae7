"""Graphs of ATen ops, as PyTorch traces them, become graphs of hone."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy
import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

from . import graph as hg
from ._errors import Error, LimitError

Size = Union[int, str]
Row = Callable[..., Any]

# The element types that both have.
TYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint64: "u64", torch.uint32: "u32", torch.uint16: "u16", torch.uint8: "u8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2: "f8e5m2", torch.float8_e5m2fnuz: "f8e5m2fnuz",
}  # fmt: skip
# Types that numpy lacks: their bits are lent and taken as those of another type.
BITS = {
    one: torch.uint16 if one == torch.bfloat16 else torch.uint8
    for one in TYPES
    if one == torch.bfloat16 or TYPES[one].startswith("f8")
}
REALS = ("f64", "f32", "f16", "bf16")


class Refused(Exception):
    """An op that hone does not take as it is given here; the text says why."""


def type_name(dtype: torch.dtype) -> str:
    if dtype not in TYPES:
        raise Refused(f"hone has no {str(dtype).replace('torch.', '')}")
    return TYPES[dtype]


def is_tensor(one: Any) -> bool:
    return isinstance(one, torch.Tensor)


def op_name(node: torch.fx.Node) -> str:
    """The name by which the table has it: "add.Tensor", "convolution"."""
    name = str(node.target)
    if isinstance(node.target, torch._ops.OpOverload):
        space = node.target.namespace
        name = name[len(space) + 1 :] if space == "aten" else name
    elif callable(node.target):
        name = getattr(node.target, "__name__", name)
    return name[: -len(".default")] if name.endswith(".default") else name


class Sizes:
    """The open sizes of a graph: expressions of sympy as text of hone."""

    def __init__(self, builder: hg.Builder, most: int) -> None:
        self._builder = builder
        self._most = most
        self.symbols: Dict[str, sympy.Symbol] = {}
        self.solved: Set[str] = set()  # those that a dim of an input gives

    def of(self, size: Any) -> Size:
        if isinstance(size, torch.SymInt):
            return self._text(size.node.expr)
        return int(size)

    def all_of(self, sizes: Sequence[Any]) -> List[Size]:
        return [self.of(one) for one in sizes]

    def add(self, symbol: sympy.Symbol, low: int) -> None:
        name = symbol.name
        if name not in self.symbols:
            self._builder.symbol(name, low, max(low, self._most))
            self.symbols[name] = symbol

    def take_input(self, sizes: Sequence[Any]) -> List[Size]:
        """The sizes of an input, whose bounds are known."""
        for one in sizes:
            if not isinstance(one, torch.SymInt):
                continue
            node = one.node
            for symbol in node.expr.free_symbols:
                bounds = node.shape_env.var_to_range.get(symbol)
                low = int(bounds.lower) if bounds is not None and bounds.lower.is_Integer else 0
                self.add(symbol, max(low, 0))
            if node.expr.is_Symbol:
                self.solved.add(node.expr.name)
        return self.all_of(sizes)

    def _text(self, expr: Any) -> Size:
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol:
            if expr.name not in self.symbols:
                self.add(expr, 0)
            return str(expr.name)
        if isinstance(expr, sympy.Add):
            return " + ".join(f"({self._text(one)})" for one in expr.args)
        if isinstance(expr, sympy.Mul):
            over, under = expr.as_numer_denom()
            if under == 1:
                return "*".join(f"({self._text(one)})" for one in expr.args)
            if under.is_Integer:
                return f"({self._text(over)})/{under}"
        if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and expr.exp > 0:
            return "*".join([f"({self._text(expr.base)})"] * int(expr.exp))
        if isinstance(expr, FloorDiv) and expr.args[1].is_Integer:
            return f"({self._text(expr.args[0])})/{expr.args[1]}"
        if isinstance(expr, (Mod, PythonMod)) and expr.args[1].is_Integer:
            over, by = self._text(expr.args[0]), expr.args[1]
            return f"({over}) - (({over})/{by})*{by}"
        raise Refused(f"the size {expr} is no expression that hone has")


class Lowering:
    """What a row of the table works with: the node, and the graph that is built."""

    def __init__(self, builder: hg.Builder, sizes: Sizes) -> None:
        self.builder = builder
        self.sizes = sizes
        self.node: torch.fx.Node = None  # type: ignore[assignment]

    # ---- The node ------------------------------------------------------------------------------

    def results(self) -> List[Any]:
        """What PyTorch knows of the results: types and shapes."""
        found = self.node.meta["val"]
        return list(found) if isinstance(found, (list, tuple)) else [found]

    @property
    def dtype(self) -> str:
        return type_name(self.results()[0].dtype)

    @property
    def dims(self) -> List[Size]:
        return self.sizes.all_of(self.results()[0].shape)

    def given(self, index: int) -> Any:
        """What PyTorch knows of an argument: a tensor without elements, or the argument itself."""
        one = self.node.args[index]
        return one.meta["val"] if isinstance(one, torch.fx.Node) else one

    def is_used(self, result: int) -> bool:
        users = [one for one in self.node.users if one.args[1:] == (result,)]
        return any(one.users for one in users)

    # ---- Values --------------------------------------------------------------------------------

    def value(self, one: Any, dtype: Optional[str] = None) -> Any:
        """An operand as a value of this type; a number becomes one, too."""
        if isinstance(one, (bool, int, float)):
            return self.number(one, dtype or ("f32" if isinstance(one, float) else "i64"))
        if isinstance(one, torch.SymInt):
            one = self.size(one)
        return one if dtype is None or one.dtype == dtype else hg.cast(one, dtype=dtype)

    def number(self, one: Union[bool, int, float], dtype: str) -> Any:
        if dtype == "bool":
            return self.builder.constant(numpy.asarray(bool(one)))
        if dtype in REALS:
            made = self.builder.constant(numpy.asarray(float(one), numpy.float64))
        else:
            limit = 1 << 64 if dtype == "u64" else 1 << 63
            wide = numpy.uint64 if dtype == "u64" else numpy.int64
            whole = int(one)
            if not -(1 << 63) <= whole < limit:
                raise Refused(f"{one} is no number of {dtype}")
            made = self.builder.constant(numpy.asarray(whole, wide))
        return made if made.dtype == dtype else hg.cast(made, dtype=dtype)

    def size(self, one: Any) -> Any:
        """A size as a value: the last index of an axis that is longer by one."""
        dim = self.sizes.of(one)
        if isinstance(dim, int):
            return self.number(dim, "i64")
        count = hg_iota(self.builder, "i64", [f"({dim}) + 1"], 0)
        last = hg.slice(count, start=[dim], limit=[f"({dim}) + 1"])
        return hg.reshape(last, dims=[])

    def full(self, one: Any, dims: Sequence[Size], dtype: str) -> Any:
        return hg.broadcast(self.value(one, dtype), dims=list(dims), map=[])

    def iota(self, dtype: str, dims: Sequence[Size], axis: int) -> Any:
        return hg_iota(self.builder, dtype, dims, axis)

    def to(self, value: Any, dims: Sequence[Size]) -> Any:
        """Stretched as numpy does."""
        if list(value.shape) == list(dims):
            return value
        first = len(dims) - len(value.shape)
        return hg.broadcast(value, dims=list(dims), map=list(range(first, len(dims))))

    def wide(self, value: Any) -> Any:
        """Halves as f32, in which PyTorch computes with them."""
        return hg.cast(value, dtype="f32") if value.dtype in ("f16", "bf16") else value

    def axis(self, one: int, rank: Optional[int] = None) -> int:
        rank = len(self.given(0).shape) if rank is None else rank
        return one % rank if rank else 0

    def axes(self, some: Any) -> List[int]:
        rank = len(self.given(0).shape)
        if some is None or (isinstance(some, (list, tuple)) and not some):
            return list(range(rank))
        some = [some] if isinstance(some, int) else some
        return sorted({self.axis(one) for one in some}) if rank else []


def hg_iota(builder: hg.Builder, dtype: str, dims: Sequence[Size], axis: int) -> Any:
    return builder.op("iota", dtype=dtype, dims=list(dims), axis=axis)[0]


class Input(NamedTuple):
    """Where an input of the graph comes from."""

    place: int  # among the arguments
    is_size: bool = False  # the argument is a number, given as the size of an empty array


class Output(NamedTuple):
    """Where a result comes from: an output of hone, an argument, a size or a constant."""

    kind: str  # "out", "argument", "size", "constant"
    what: Any
    dtype: Optional[torch.dtype] = None
    order: Optional[List[int]] = None  # hone gives the dims in this order; none: as they are


class Lowered(NamedTuple):
    graph: Optional[hg.Graph]  # none: some nodes were refused, or nothing is left to compute
    inputs: List[Input]
    outputs: List[Output]
    refused: Dict[torch.fx.Node, str]


def _order(tensor: torch.Tensor) -> Optional[List[int]]:
    """The dims from the outermost in memory; none: row by row. Code that follows in PyTorch was
    traced with such strides."""
    strides = [one if isinstance(one, int) else one.node.hint for one in tensor.stride()]
    if any(one is None or (one == 0 and size != 1) for one, size in zip(strides, tensor.shape)):
        return None
    order = sorted(range(len(strides)), key=lambda dim: -strides[dim])
    return None if order == sorted(order) else order


def _known(node: torch.fx.Node) -> List[Any]:
    found = node.meta.get("val")
    return list(found) if isinstance(found, (list, tuple)) else [found]


class _Walk:
    def __init__(self, module: torch.fx.GraphModule, rows: Dict[str, Row], most: int) -> None:
        self.module = module
        self.rows = rows
        self.builder = hg.Builder("main")
        self.sizes = Sizes(self.builder, most)
        self.lowering = Lowering(self.builder, self.sizes)
        self.values: Dict[torch.fx.Node, Any] = {}
        self.inputs: List[Input] = []
        self.outputs: List[Output] = []
        self.results: List[Any] = []
        self.refused: Dict[torch.fx.Node, str] = {}
        self.numbers: Dict[str, int] = {}  # symbol: the argument that is its number

    def run(self) -> Lowered:
        place = 0
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.add_input(node, place)
                place += 1
            elif node.op == "output":
                self.output(node)
            elif node.op == "get_attr":
                self.attribute(node)
            else:
                self.call(node)
        if self.refused or not self.results:
            return Lowered(None, self.inputs, self.outputs, self.refused)
        for name in self.sizes.symbols:
            if name not in self.sizes.solved:
                if name not in self.numbers:
                    return self.without(f"no input says how much {name} is")
                self.inputs.append(Input(self.numbers[name], is_size=True))
                self.builder.parameter(f"size_{name}", "u8", [name])
        return Lowered(
            self.builder.finish(*self.results), self.inputs, self.outputs, self.refused
        )

    def without(self, reason: str) -> Lowered:
        """All of it is refused."""
        calls = [node for node in self.module.graph.nodes if node.op.startswith("call_")]
        return Lowered(None, [], [], {node: reason for node in calls})

    def parameter(self, name: str, tensor: Any) -> Any:
        if not is_tensor(tensor):
            raise Refused("it is no tensor")
        if tensor.device.type != "cpu":
            raise Refused(f"it is on {tensor.device}")
        if tensor.layout != torch.strided:
            raise Refused("it is sparse")
        dims = self.sizes.take_input(tensor.shape)
        return self.builder.parameter(name, type_name(tensor.dtype), dims)

    def add_input(self, node: torch.fx.Node, place: int) -> None:
        tensor = node.meta.get("val")
        if isinstance(tensor, torch.SymInt) and tensor.node.expr.is_Symbol:
            self.numbers.setdefault(tensor.node.expr.name, place)
        if not node.users or not is_tensor(tensor):
            return
        if all(user.op == "output" for user in node.users):
            return
        try:
            self.values[node] = self.parameter(node.name, tensor)
            self.inputs.append(Input(place))
        except Refused as why:
            self.values[node] = why

    def attribute(self, node: torch.fx.Node) -> None:
        found: Any = self.module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if is_tensor(found):
            try:
                if isinstance(found, FakeTensor) or found.device.type != "cpu":
                    raise Refused("it is a constant without elements in memory")
                type_name(found.dtype)
                with _disable_current_modes():  # PyTorch may be tracing: this is no part of it
                    plain = found.detach().contiguous()
                    bits = BITS.get(plain.dtype)
                    array = (plain.view(bits) if bits else plain).numpy()
                value = self.builder.constant(array)
                self.values[node] = hg.bitcast(value, dtype=TYPES[found.dtype]) if bits else value
            except (Refused, Error) as why:
                self.values[node] = Refused(str(why))

    def argument(self, one: Any) -> Any:
        if isinstance(one, torch.fx.Node):
            if one in self.values:
                value = self.values[one]
                if isinstance(value, Refused):
                    raise value
                return value
            known = one.meta.get("val")
            if isinstance(known, (int, float, bool, torch.SymInt)):
                return known
            raise Refused(f"the operand {one.name} is no tensor")
        if isinstance(one, (list, tuple)):
            return [self.argument(each) for each in one]
        return one

    def call(self, node: torch.fx.Node) -> None:
        name = op_name(node)
        known = _known(node)
        if not any(is_tensor(one) for one in known):
            if known == [None] and not node.users:  # an assertion that is part of the program
                if name not in self.rows:
                    self.refused[node] = "it gives no tensor"
            return  # numbers and sizes: those who use them ask PyTorch what they are
        try:
            if name == "getitem":
                source, index = node.args
                self.values[node] = self.values[source][index]
                if isinstance(self.values[node], Refused):
                    raise self.values[node]
                return
            if name not in self.rows:
                raise Refused("there is no row for it")
            for one in known:
                if is_tensor(one):
                    type_name(one.dtype)
                    if one.device.type != "cpu":
                        raise Refused(f"it is on {one.device}")
            self.lowering.node = node
            args = [self.argument(one) for one in node.args]
            kwargs = {key: self.argument(one) for key, one in node.kwargs.items()}
            self.values[node] = self.checked(self.rows[name](self.lowering, *args, **kwargs), known)
        except LimitError:
            raise
        except GuardOnDataDependentSymNode:
            self.refuse(node, known, "a size or an index depends on data")
        except (Refused, Error, TypeError, ValueError, KeyError, OverflowError, IndexError) as why:
            self.refuse(node, known, str(why) or type(why).__name__)

    def checked(self, made: Any, known: List[Any]) -> Any:
        """What a row gives has the types that PyTorch says."""
        several = made if isinstance(made, (list, tuple)) else [made]
        for one, tensor in zip(several, known):
            if one is None or not is_tensor(tensor):
                continue
            if one.dtype != type_name(tensor.dtype):
                raise Refused(f"it is {one.dtype} in hone, {tensor.dtype} in PyTorch")
            if len(one.shape) != tensor.dim() or any(
                here != there
                for here, there in zip(one.shape, self.sizes.all_of(tensor.shape))
                if isinstance(here, int) and isinstance(there, int)
            ):
                raise Refused(f"it is {one.shape} in hone, {tuple(tensor.shape)} in PyTorch")
        return made

    def refuse(self, node: torch.fx.Node, known: List[Any], why: str) -> None:
        """Goes on with its results as if they were inputs, to find out about the others."""
        self.refused[node] = why.splitlines()[0]
        made = []
        for i, one in enumerate(known):
            try:
                made.append(self.parameter(f"{node.name}_{i}", one))
            except Refused as reason:
                made.append(reason)
        several = isinstance(node.meta.get("val"), (list, tuple))
        self.values[node] = made if several else made[0]

    def output(self, node: torch.fx.Node) -> None:
        given = node.args[0]
        places = {one: i for i, one in enumerate(self.module.graph.find_nodes(op="placeholder"))}
        for one in given if isinstance(given, (list, tuple)) else [given]:
            if not isinstance(one, torch.fx.Node):
                self.outputs.append(Output("constant", one))
            elif one.op == "placeholder":
                self.outputs.append(Output("argument", places[one]))
            elif isinstance(one.meta.get("val"), torch.SymInt):
                self.outputs.append(Output("size", one.meta["val"].node.expr))
            elif isinstance(self.values.get(one), (Refused, type(None))):
                self.outputs.append(Output("constant", None))
                self.refused.setdefault(one, str(self.values.get(one)))
            else:
                known, value = one.meta["val"], self.values[one]
                order = _order(known)
                self.outputs.append(Output("out", len(self.results), known.dtype, order))
                self.results.append(
                    value if order is None else hg.transpose(value, permutation=order)
                )


# Largest sizes of open dims, tried one after another: a type of hone has less than 2^60 elements.
_BOUNDS = (1 << 24, 1 << 18, 1 << 13)


def lower(module: torch.fx.GraphModule, rows: Dict[str, Row]) -> Lowered:
    """The graph of hone, or the nodes that it does not take."""
    for most in _BOUNDS:
        try:
            return _Walk(module, rows, most).run()
        except LimitError as error:
            last = error
        except Error as error:
            return _Walk(module, rows, most).without(str(error.what))
    return _Walk(module, rows, most).without(str(last.what))


def symbol_sources(module: torch.fx.GraphModule) -> Dict[Any, Tuple[int, Optional[int]]]:
    """By symbol: the argument that is it, or the argument and its dim that has this size."""
    found: Dict[Any, Tuple[int, Optional[int]]] = {}
    for place, node in enumerate(module.graph.find_nodes(op="placeholder")):
        known = node.meta.get("val")
        if isinstance(known, torch.SymInt) and known.node.expr.is_Symbol:
            found[known.node.expr] = (place, None)
        elif is_tensor(known):
            for i, one in enumerate(known.shape):
                if isinstance(one, torch.SymInt) and one.node.expr.is_Symbol:
                    found.setdefault(one.node.expr, (place, i))
    return found
