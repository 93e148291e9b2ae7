"""The table of ATen ops: each row makes the values of one op. _aten_blocks.py has the larger ones.

A row takes the Lowering and the operands: values of hone, numbers, sizes, lists. It gives a value,
or a list of values. It raises Refused for what it does not take; PyTorch then computes the op.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy
import torch

from . import graph as hg
from ._fx import REALS, Lowering, Refused, Row, type_name

ROWS: Dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        for name in names:
            assert name not in ROWS, name
            ROWS[name] = function
        return function

    return add


# ---- Elementwise: one operand ------------------------------------------------------------------

_UNARY = {
    "neg": "neg", "abs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "round": "round", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin",
    "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "sigmoid": "logistic", "erf": "erf",
    "relu": "relu", "silu": "silu", "mish": "mish", "bitwise_not": "not",
}  # fmt: skip
_WHOLE = ("floor", "ceil", "trunc", "round")


def _unary(op: str) -> Row:
    def lower(it: Lowering, x: Any) -> Any:
        x = it.value(x, it.dtype)
        if op in _WHOLE and x.dtype not in REALS:
            return x
        return it.value(hg_op(op)(it.wide(x)), it.dtype)

    return lower


def hg_op(name: str) -> Any:
    return getattr(hg, name + "_" if name in ("and", "or", "not") else name)


for _name, _op in _UNARY.items():
    row(_name)(_unary(_op))


@row("sign")
def sign(it: Lowering, x: Any) -> Any:
    if x.dtype == "bool":
        return x
    made = hg.sign(x)
    if x.dtype not in REALS:
        return made
    return hg.select(hg.is_nan(x), it.full(0, x.shape, x.dtype), made)


@row("reciprocal")
def reciprocal(it: Lowering, x: Any) -> Any:
    x = it.value(x, it.dtype)
    return hg.div(it.number(1.0, it.dtype), x)


@row("exp2")
def exp2(it: Lowering, x: Any) -> Any:
    x = it.wide(it.value(x, it.dtype))
    return it.value(hg.pow(it.number(2.0, x.dtype), x), it.dtype)


def _log_of(it: Lowering, x: Any, base: int) -> Any:
    """Exact for powers of the base."""
    x = hg.cast(it.value(x, it.dtype), dtype="f64")
    made = hg.mul(hg.log(x), it.number(1 / math.log(base), "f64"))
    whole = hg.round(made)
    is_power = hg.compare(hg.pow(it.number(base, "f64"), whole), x, direction="eq")
    return it.value(hg.select(is_power, whole, made), it.dtype)


@row("log2")
def log2(it: Lowering, x: Any) -> Any:
    return _log_of(it, x, 2)


@row("log10")
def log10(it: Lowering, x: Any) -> Any:
    return _log_of(it, x, 10)


@row("isnan")
def isnan(it: Lowering, x: Any) -> Any:
    return hg.is_nan(x) if x.dtype in REALS else it.full(False, x.shape, "bool")


@row("isinf")
def isinf(it: Lowering, x: Any) -> Any:
    return hg.is_inf(x) if x.dtype in REALS else it.full(False, x.shape, "bool")


@row("logical_not")
def logical_not(it: Lowering, x: Any) -> Any:
    return hg.not_(it.value(x, "bool"))


@row("gelu")
def gelu(it: Lowering, x: Any, approximate: str = "none") -> Any:
    form = "erf" if approximate == "none" else "tanh"
    return it.value(hg.gelu(it.wide(x), form=form), it.dtype)


@row("softplus")
def softplus(it: Lowering, x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    wide = it.wide(x)
    scaled = hg.mul(wide, it.number(beta, wide.dtype))
    made = hg.div(hg.softplus(scaled), it.number(beta, wide.dtype))
    large = hg.compare(scaled, it.number(threshold, wide.dtype), direction="gt")
    return it.value(hg.select(large, wide, made), it.dtype)


@row("leaky_relu")
def leaky_relu(it: Lowering, x: Any, slope: Any = 0.01) -> Any:
    below = hg.compare(x, it.number(0, x.dtype), direction="gt")
    return hg.select(below, x, hg.mul(x, it.number(slope, x.dtype)))


@row("elu")
def elu(it: Lowering, x: Any, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Any:
    wide = it.wide(x)
    curve = hg.expm1(hg.mul(wide, it.number(input_scale, wide.dtype)))
    below = hg.mul(curve, it.number(float(alpha) * float(scale), wide.dtype))
    above = hg.mul(wide, it.number(scale, wide.dtype))
    positive = hg.compare(wide, it.number(0, wide.dtype), direction="gt")
    return it.value(hg.select(positive, above, below), it.dtype)


@row("hardtanh")
def hardtanh(it: Lowering, x: Any, low: Any = -1, high: Any = 1) -> Any:
    return clamp(it, x, low, high)


@row("hardsigmoid")
def hardsigmoid(it: Lowering, x: Any) -> Any:
    return it.value(hg.hard_sigmoid(it.wide(x)), it.dtype)


@row("hardswish")
def hardswish(it: Lowering, x: Any) -> Any:
    return it.value(hg.hard_swish(it.wide(x)), it.dtype)


@row("clamp", "clamp.Tensor")
def clamp(it: Lowering, x: Any, low: Any = None, high: Any = None) -> Any:
    made = it.value(x, it.dtype)
    if low is not None:
        made = hg.max(made, it.value(low, it.dtype))
    if high is not None:
        made = hg.min(made, it.value(high, it.dtype))
    return made


@row("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_to_copy",
     "prims.convert_element_type")  # fmt: skip
def copy_of(it: Lowering, x: Any, *_: Any, **__: Any) -> Any:
    return it.value(x, it.dtype)


@row("view.dtype")
def bits(it: Lowering, x: Any, _: Any) -> Any:
    if x.dtype == it.dtype:
        return x
    if "bool" in (x.dtype, it.dtype) or list(x.shape) != it.dims:
        raise Refused("it reads bits as a type of another width")
    return hg.bitcast(x, dtype=it.dtype)


@row("copy")
def copied(it: Lowering, x: Any, other: Any, *_: Any) -> Any:
    return it.to(it.value(other, it.dtype), it.dims)


# ---- Elementwise: several operands -------------------------------------------------------------


def _pair(it: Lowering, a: Any, b: Any, dtype: str) -> Any:
    return it.value(a, dtype), it.value(b, dtype)


def _scaled(it: Lowering, b: Any, alpha: Any) -> Any:
    b = it.value(b, it.dtype)
    return b if alpha == 1 else hg.mul(b, it.value(alpha, it.dtype))


@row("add.Tensor", "add.Scalar")
def add(it: Lowering, a: Any, b: Any, alpha: Any = 1) -> Any:
    if it.dtype == "bool":
        return hg.or_(*_pair(it, a, b, "bool"))
    return it.to(hg.add(it.value(a, it.dtype), _scaled(it, b, alpha)), it.dims)


@row("sub.Tensor", "sub.Scalar")
def sub(it: Lowering, a: Any, b: Any, alpha: Any = 1) -> Any:
    return hg.sub(it.value(a, it.dtype), _scaled(it, b, alpha))


@row("mul.Tensor", "mul.Scalar")
def mul(it: Lowering, a: Any, b: Any) -> Any:
    op = hg.and_ if it.dtype == "bool" else hg.mul
    return op(*_pair(it, a, b, it.dtype))


def _differ(a: Any, b: Any, it: Lowering) -> Any:
    """Where one is negative and the other is not."""
    zero_a, zero_b = it.number(0, a.dtype), it.number(0, b.dtype)
    below_a = hg.compare(a, zero_a, direction="lt")
    return hg.compare(below_a, hg.compare(b, zero_b, direction="lt"), direction="ne")


def _floored_rest(it: Lowering, a: Any, b: Any) -> Any:
    """The remainder with the sign of b, and where it is not that of the truncating division."""
    rest = hg.rem(a, b)
    some = hg.compare(rest, it.number(0, a.dtype), direction="ne")
    wrong = hg.and_(some, _differ(rest, b, it))
    return hg.select(wrong, hg.add(rest, b), rest), wrong


@row("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def div(it: Lowering, a: Any, b: Any, rounding_mode: Optional[str] = None) -> Any:
    a, b = _pair(it, a, b, it.dtype)
    if rounding_mode is None:
        return it.value(hg.div(it.wide(a), it.wide(b)), it.dtype)
    a, b = it.wide(a), it.wide(b)
    if rounding_mode == "trunc":
        made = hg.div(a, b)
        return it.value(hg.trunc(made) if a.dtype in REALS else made, it.dtype)
    if a.dtype not in REALS:
        if a.dtype.startswith("u"):
            return hg.div(a, b)
        _, wrong = _floored_rest(it, a, b)
        whole = hg.div(a, b)
        return hg.select(wrong, hg.sub(whole, it.number(1, a.dtype)), whole)
    _, wrong = _floored_rest(it, a, b)
    whole = hg.round(hg.div(hg.sub(a, hg.rem(a, b)), b))  # but for rounding, it is whole before
    whole = hg.select(wrong, hg.sub(whole, it.number(1, a.dtype)), whole)
    at_zero = hg.compare(b, it.number(0, b.dtype), direction="eq")
    return it.value(hg.select(at_zero, hg.div(a, b), whole), it.dtype)


@row("floor_divide")
def floor_divide(it: Lowering, a: Any, b: Any) -> Any:
    return div(it, a, b, "floor")


@row("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(it: Lowering, a: Any, b: Any) -> Any:
    a, b = _pair(it, a, b, it.dtype)
    return hg.rem(a, b) if a.dtype.startswith("u") else _floored_rest(it, a, b)[0]


@row("fmod.Tensor", "fmod.Scalar")
def fmod(it: Lowering, a: Any, b: Any) -> Any:
    return hg.rem(*_pair(it, a, b, it.dtype))


@row("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(it: Lowering, a: Any, b: Any) -> Any:
    if isinstance(b, (int, float)) and not isinstance(b, bool) and b in (0.5, 1, 2, 3, -1, -0.5):
        x = it.value(a, it.dtype)
        if b in (1, 2, 3):
            return x if b == 1 else hg.mul(x, x) if b == 2 else hg.mul(hg.mul(x, x), x)
        if x.dtype in REALS:
            if b == -1:
                return hg.div(it.number(1.0, x.dtype), x)
            return hg.sqrt(x) if b == 0.5 else hg.rsqrt(x)
    a, b = _pair(it, a, b, it.dtype)
    return it.value(hg.pow(it.wide(a), it.wide(b)), it.dtype)


for _name, _op in {"maximum": "max", "minimum": "min", "atan2": "atan2"}.items():

    def _two(it: Lowering, a: Any, b: Any, op: str = _op) -> Any:
        a, b = _pair(it, a, b, it.dtype)
        if a.dtype == "bool":
            return (hg.or_ if op == "max" else hg.and_)(a, b)
        return hg_op(op)(a, b)

    row(_name)(_two)

for _name, _op in {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
                   "bitwise_left_shift": "shift_left", "__lshift__": "shift_left",
                   "bitwise_right_shift": "shift_right",
                   "__rshift__": "shift_right"}.items():  # fmt: skip

    def _bits(it: Lowering, a: Any, b: Any, op: str = _op) -> Any:
        return hg_op(op)(*_pair(it, a, b, it.dtype))

    row(f"{_name}.Tensor", f"{_name}.Scalar")(_bits)

for _op in ("and", "or", "xor"):

    def _logical(it: Lowering, a: Any, b: Any, op: str = _op) -> Any:
        return hg_op(op)(*_pair(it, a, b, "bool"))

    row(f"logical_{_op}")(_logical)


def common_type(it: Lowering, a: Any, b: Any) -> str:
    """The type in which PyTorch compares these arguments of the node."""
    some = [it.given(0), it.given(1)]
    some = [1 if isinstance(one, torch.SymInt) else one for one in some]
    return type_name(torch.result_type(*some))


for _op in ("eq", "ne", "lt", "le", "gt", "ge"):

    def _compare(it: Lowering, a: Any, b: Any, op: str = _op) -> Any:
        dtype = common_type(it, a, b)
        if isinstance(b, float) and dtype not in REALS:
            raise Refused("it compares integers with a fraction")
        return hg.compare(*_pair(it, a, b, dtype), direction=op)

    row(f"{_op}.Tensor", f"{_op}.Scalar")(_compare)


@row("where.self")
def where(it: Lowering, condition: Any, a: Any, b: Any) -> Any:
    a, b = _pair(it, a, b, it.dtype)
    return it.to(hg.select(it.value(condition, "bool"), a, b), it.dims)


# ---- Values that come from nothing -------------------------------------------------------------


@row("full", "full_like", "new_full", "empty.memory_format", "empty_like", "new_empty",
     "zeros", "ones", "zeros_like", "ones_like", "new_zeros", "new_ones", "scalar_tensor",
     "empty_strided", "empty_permuted", "new_empty_strided", "fill.Scalar",
     "fill.Tensor")  # fmt: skip
def full(it: Lowering, *args: Any, **_: Any) -> Any:
    name = str(it.node.target).split(".")[1]
    one: Any = 0
    if name in ("full", "full_like", "new_full", "fill"):
        one = args[2] if name == "new_full" else args[1]
    elif name == "scalar_tensor":
        one = args[0]
    elif "ones" in name:
        one = 1
    if isinstance(one, (float, bool, int)) and it.dtype == "bool":
        one = bool(one)
    return it.full(one, it.dims, it.dtype)


@row("arange.start_step", "arange", "arange.start")
def arange(it: Lowering, *args: Any, **_: Any) -> Any:
    start, step = (0, 1) if len(args) == 1 else (args[0], args[2] if len(args) > 2 else 1)
    whole = all(isinstance(one, (int, torch.SymInt)) for one in (start, step))
    kind = "i64" if whole else "f64"
    count = it.iota(kind, it.dims, 0)
    made = count if isinstance(step, int) and step == 1 else hg.mul(count, it.value(step, kind))
    if not (isinstance(start, (int, float)) and start == 0):
        made = hg.add(made, it.value(start, kind))
    return it.value(made, it.dtype)


# ---- Shapes ------------------------------------------------------------------------------------


@row("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims",
     "view_copy", "_reshape_copy", "flatten.using_ints", "unflatten.int")  # fmt: skip
def reshape(it: Lowering, x: Any, *_: Any, **__: Any) -> Any:
    return x if list(x.shape) == it.dims else hg.reshape(x, dims=it.dims)


@row("expand")
def expand(it: Lowering, x: Any, *_: Any, **__: Any) -> Any:
    return it.to(x, it.dims)


@row("permute")
def permute(it: Lowering, x: Any, dims: Sequence[int]) -> Any:
    return hg.transpose(x, permutation=[it.axis(one) for one in dims])


@row("t")
def transposed(it: Lowering, x: Any) -> Any:
    return x if len(x.shape) < 2 else hg.transpose(x, permutation=[1, 0])


@row("transpose.int")
def transpose(it: Lowering, x: Any, a: int, b: int) -> Any:
    order = list(range(len(x.shape)))
    if order:
        a, b = it.axis(a), it.axis(b)
        order[a], order[b] = order[b], order[a]
    return hg.transpose(x, permutation=order)


def part(it: Lowering, x: Any, axis: int, start: Any, count: Any, step: int = 1) -> Any:
    """`count` elements along the axis, from `start` on; both may be open sizes."""
    first: List[Any] = [0] * len(x.shape)
    limit, strides = list(x.shape), [1] * len(x.shape)
    first[axis] = it.sizes.of(start)
    if isinstance(count, int) and count == 0:
        limit[axis] = first[axis]
    else:
        limit[axis] = it.sizes.of(start + (count - 1) * step + 1)
    strides[axis] = step
    return hg.slice(x, start=first, limit=limit, stride=strides)


def begin(start: Any, size: Any) -> Any:
    """Where a slice that may count from the end begins."""
    if start is None:
        return 0
    if isinstance(start, int) and isinstance(size, int):
        return min(max(start + size if start < 0 else start, 0), size)
    return start + size if start < 0 else start


@row("slice.Tensor")
def sliced(it: Lowering, x: Any, dim: int = 0, start: Any = None, end: Any = None,
           step: int = 1) -> Any:  # fmt: skip
    axis = it.axis(dim)
    count = it.results()[0].shape[axis]
    return part(it, x, axis, begin(start, it.given(0).shape[axis]), count, step)


@row("select.int")
def selected(it: Lowering, x: Any, dim: int, index: Any) -> Any:
    axis = it.axis(dim)
    size = it.given(0).shape[axis]
    one = part(it, x, axis, index + size if index < 0 else index, 1)
    return hg.reshape(one, dims=it.dims)


@row("split_with_sizes", "split.Tensor", "unsafe_split.Tensor", "unbind.int", "chunk")
def split(it: Lowering, x: Any, *args: Any) -> List[Any]:
    name = str(it.node.target)
    axis = it.axis(args[-1] if len(args) > (0 if "unbind" in name else 1) else 0)
    start: Any = 0
    made = []
    for one in it.results():
        size = 1 if "unbind" in name else one.shape[axis]
        found = part(it, x, axis, start, size)
        made.append(hg.reshape(found, dims=it.sizes.all_of(one.shape)))
        start = start + size
    return made


@row("cat")
def cat(it: Lowering, some: Sequence[Any], dim: int = 0) -> Any:
    rank = len(it.results()[0].shape)
    kept = [it.value(one, it.dtype) for one in some if len(one.shape) == rank]
    return kept[0] if len(kept) == 1 else hg.concat(*kept, axis=it.axis(dim, rank))


@row("stack")
def stack(it: Lowering, some: Sequence[Any], dim: int = 0) -> Any:
    axis = it.axis(dim, len(it.results()[0].shape))
    made = []
    for one in some:
        dims = list(one.shape)
        made.append(hg.reshape(it.value(one, it.dtype), dims=dims[:axis] + [1] + dims[axis:]))
    return hg.concat(*made, axis=axis)


@row("flip")
def flip(it: Lowering, x: Any, dims: Sequence[int]) -> Any:
    return hg.reverse(x, axes=it.axes(dims)) if dims else x


@row("repeat")
def repeat(it: Lowering, x: Any, repeats: Sequence[Any]) -> Any:
    own = [1] * (len(repeats) - len(x.shape)) + list(x.shape)
    dims: List[Any] = []
    places = []
    for times, size in zip(repeats, own):
        places.append(len(dims) + 1)
        dims += [it.sizes.of(times), size]
    return hg.reshape(hg.broadcast(hg.reshape(x, dims=own), dims=dims, map=places), dims=it.dims)


@row("constant_pad_nd")
def padded(it: Lowering, x: Any, pad: Sequence[Any], value: Any = 0) -> Any:
    rank = len(x.shape)
    low: List[Any] = [0] * rank
    high: List[Any] = [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i] = it.sizes.of(pad[2 * i])
        high[rank - 1 - i] = it.sizes.of(pad[2 * i + 1])
    return hg.pad(x, it.value(value, x.dtype), low=low, high=high)


def _write(it: Lowering, x: Any, update: Any, axis: int, start: Any) -> Any:
    """x with the update in place, from `start` along the axis."""
    starts = [it.value(start if i == axis else 0, "i64") for i in range(len(x.shape))]
    return hg.dynamic_update(x, it.value(update, x.dtype), *starts)


@row("slice_scatter")
def slice_scatter(it: Lowering, x: Any, source: Any, dim: int = 0, start: Any = None,
                  end: Any = None, step: int = 1) -> Any:  # fmt: skip
    axis = it.axis(dim)
    if step == 1:
        return _write(it, x, source, axis, begin(start, it.given(0).shape[axis]))
    size, first = x.shape[axis], begin(start, it.given(0).shape[axis])
    count = source.shape[axis]
    if not all(isinstance(one, int) for one in (size, first, count)):
        raise Refused("it writes every n-th element of an open size")
    low, high, inner = [0] * len(x.shape), [0] * len(x.shape), [0] * len(x.shape)
    low[axis], inner[axis] = first, step - 1
    high[axis] = size - first - ((count - 1) * step + 1)
    zero, yes = it.number(0, x.dtype), numpy.ones([1], numpy.bool_)
    spread = hg.pad(it.value(source, x.dtype), zero, low=low, high=high, interior=inner)
    mark = numpy.zeros(size, numpy.bool_)
    mark[first : first + (count - 1) * step + 1 : step] = yes
    mask = hg.broadcast(it.builder.constant(mark), dims=list(x.shape), map=[axis])
    return hg.select(mask, spread, x)


@row("select_scatter")
def select_scatter(it: Lowering, x: Any, source: Any, dim: int, index: Any) -> Any:
    axis = it.axis(dim)
    dims = list(x.shape)
    dims[axis] = 1
    place = index + it.given(0).shape[axis] if index < 0 else index
    return _write(it, x, hg.reshape(source, dims=dims), axis, place)


@row("diagonal")
def diagonal(it: Lowering, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    rank = len(x.shape)
    a, b = it.axis(dim1), it.axis(dim2)
    order = [i for i in range(rank) if i not in (a, b)]
    moved = hg.transpose(x, permutation=[a, b] + order)
    count = [it.dims[-1]]
    places = it.iota("i64", count, 0)
    first, second = (0, offset) if offset >= 0 else (-offset, 0)
    pair = [hg.reshape(hg.add(places, it.number(one, "i64")), dims=count + [1])
            for one in (first, second)]  # fmt: skip
    rest = list(moved.shape[2:])
    return hg.gather(
        moved, hg.concat(*pair, axis=1), offset_dims=list(range(rank - 2)), collapsed_dims=[0, 1],
        index_map=[0, 1], index_vector_dim=1, sizes=[1, 1] + rest,
    )  # fmt: skip


# ---- Reductions --------------------------------------------------------------------------------


def kept(it: Lowering, made: Any) -> Any:
    """With the dims of size 1 that the result keeps."""
    return made if list(made.shape) == it.dims else hg.reshape(made, dims=it.dims)


@row("sum.dim_IntList", "sum", "prod", "prod.dim_int")
def total(it: Lowering, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    kind = "product" if "prod" in str(it.node.target) else "sum"
    wide = it.wide(it.value(x, it.dtype))
    return kept(it, it.value(hg.reduce(wide, kind=kind, axes=it.axes(dim)), it.dtype))


def mean_of(it: Lowering, x: Any, axes: Sequence[int]) -> Any:
    """Of a real value: the mean over the axes, which stay with size 1."""
    dims = [1 if i in axes else one for i, one in enumerate(x.shape)]
    summed = hg.reshape(hg.reduce(x, kind="sum", axes=list(axes)), dims=dims)
    return hg.div(summed, count_of(it, x, axes))


def count_of(it: Lowering, x: Any, axes: Sequence[int], less: Any = 0) -> Any:
    """How many elements the axes have, as a number of its type."""
    sizes = [x.shape[i] for i in axes]
    if all(isinstance(one, int) for one in sizes):
        return it.number(max(float(math.prod(sizes)) - less, 0.0), x.dtype)
    count: Any = "*".join(f"({one})" for one in sizes)
    made = hg.cast(it_size(it, count), dtype=x.dtype)
    return made if less == 0 else hg.sub(made, it.number(less, x.dtype))


def it_size(it: Lowering, text: str) -> Any:
    count = it.iota("i64", [f"({text}) + 1"], 0)
    return hg.reshape(hg.slice(count, start=[text], limit=[f"({text}) + 1"]), dims=[])


@row("mean.dim", "mean")
def mean(it: Lowering, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    wide = it.wide(it.value(x, it.dtype))
    made = mean_of(it, wide, it.axes(dim))
    return it.value(hg.reshape(made, dims=it.dims), it.dtype)


@row("var.correction", "var_mean.correction")
def variance(it: Lowering, x: Any, dim: Any = None, correction: Any = None,
             keepdim: bool = False) -> Any:  # fmt: skip
    wide, axes = it.wide(x), it.axes(dim)
    less = 1 if correction is None else correction
    average = mean_of(it, wide, axes)
    apart = hg.sub(wide, average)
    squares = hg.reduce(hg.mul(apart, apart), kind="sum", axes=axes)
    made = hg.div(squares, count_of(it, wide, axes, less))
    made = it.value(hg.reshape(made, dims=it.dims), it.dtype)
    if "var_mean" not in str(it.node.target):
        return made
    return [made, it.value(hg.reshape(average, dims=it.dims), it.dtype)]


def _extreme(kind: str) -> Row:
    def lower(it: Lowering, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.dtype == "bool":
            kind_of = "or" if kind == "max" else "and"
            return kept(it, hg.reduce(x, kind=kind_of, axes=it.axes(dim)))
        return kept(it, hg.reduce(x, kind=kind, axes=it.axes(dim)))

    return lower


for _kind in ("max", "min"):
    row(f"a{_kind}", _kind)(_extreme(_kind))

    def _with_place(it: Lowering, x: Any, dim: int, keepdim: bool = False,
                    kind: str = _kind) -> List[Any]:  # fmt: skip
        if not x.shape:
            return [x, it.number(0, "i64")]
        if x.dtype == "bool":
            raise Refused("it looks for an extreme of bools")
        axis = it.axis(dim)
        made = [hg.reduce(x, kind=kind, axes=[axis]), hg.arg_reduce(x, kind=kind, axis=axis)]
        return [kept(it, one) for one in made]

    row(f"{_kind}.dim")(_with_place)

    def _place(it: Lowering, x: Any, dim: Any = None, keepdim: bool = False,
               kind: str = _kind) -> Any:  # fmt: skip
        if dim is None or not x.shape:
            x = hg.reshape(x, dims=["*".join(f"({one})" for one in x.shape) or 1]
                           if any(isinstance(one, str) for one in x.shape)
                           else [math.prod(x.shape)])  # fmt: skip
            return kept(it, hg.arg_reduce(x, kind=kind, axis=0))
        return kept(it, hg.arg_reduce(x, kind=kind, axis=it.axis(dim)))

    row(f"arg{_kind}")(_place)

for _name, _op in (("any", "or"), ("all", "and")):

    def _truth(it: Lowering, x: Any, dim: Any = None, keepdim: bool = False, op: str = _op) -> Any:
        made = kept(it, hg.reduce(it.value(x, "bool"), kind=op, axes=it.axes(dim)))
        return it.value(made, it.dtype)

    row(_name, f"{_name}.dim", f"{_name}.dims")(_truth)


@row("cumsum", "cumprod")
def running(it: Lowering, x: Any, dim: int, dtype: Any = None) -> Any:
    x = it.value(x, it.dtype)
    if not x.shape:
        return x
    kind = "product" if "prod" in str(it.node.target) else "sum"
    return it.value(hg.cumulative(it.wide(x), kind=kind, axis=it.axis(dim)), it.dtype)


@row("sort", "sort.stable")
def sort(it: Lowering, x: Any, dim: int = -1, descending: bool = False, *,
         stable: Any = None) -> Any:  # fmt: skip
    if not x.shape:
        return [x, it.number(0, "i64")]
    axis = it.axis(dim)
    places = it.iota("i64", x.shape, axis)
    return list(hg.sort(x, places, axis=axis, descending=descending))


@row("topk")
def topk(it: Lowering, x: Any, k: Any, dim: int = -1, largest: bool = True,
         in_order: bool = True) -> Any:  # fmt: skip
    return list(hg.top_k(x, k=[it.sizes.of(k)], axis=it.axis(dim), largest=largest))


# ---- Assertions: what was asserted while tracing holds -----------------------------------------


@row("_assert_tensor_metadata", "_assert_scalar", "_assert_async.msg", "_assert_async",
     "sym_constrain_range_for_size", "sym_constrain_range")  # fmt: skip
def nothing(it: Lowering, *_: Any, **__: Any) -> Any:
    return None
