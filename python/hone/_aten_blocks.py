"""The table of ATen ops, continued: products, windows, norms, attention, indices."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence

import numpy

from . import graph as hg
from ._aten import ROWS, kept, mean_of, part, row
from ._fx import Lowering, Refused

__all__ = ["ROWS"]


def _numbers(some: Any, count: int, name: str) -> List[int]:
    """One number per spatial dim; they must be known."""
    given = list(some) if isinstance(some, (list, tuple)) else [some]
    given = given * count if len(given) == 1 else given
    if not all(isinstance(one, int) for one in given):
        raise Refused(f"its {name} is an open size")
    return given


# ---- Products ----------------------------------------------------------------------------------


def product(it: Lowering, a: Any, b: Any, batch: int = 0) -> Any:
    """The matrix product, over the last dim of a and the first one after the batch dims of b."""
    dims = list(range(batch))
    made = hg.dot(
        a, b, lhs_batch=dims, rhs_batch=dims, lhs_contract=[len(a.shape) - 1], rhs_contract=[batch]
    )
    return made


@row("mm", "mv", "dot", "matmul")
def matmul(it: Lowering, a: Any, b: Any) -> Any:
    if len(a.shape) > 2 or len(b.shape) > 2:
        return it.value(a, it.dtype) @ it.value(b, it.dtype)
    return product(it, a, b)


@row("bmm")
def bmm(it: Lowering, a: Any, b: Any) -> Any:
    return product(it, a, b, 1)


@row("addmm", "baddbmm")
def addmm(it: Lowering, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    made = product(it, a, b, len(a.shape) - 2)
    if alpha != 1:
        made = hg.mul(made, it.number(alpha, made.dtype))
    if beta == 0:
        return made
    added = c if beta == 1 else hg.mul(c, it.number(beta, c.dtype))
    return hg.add(made, added)


def _orders(rank: int, first: str, second: str, third: str) -> str:
    """The text of a convolution's dims: "bf", "oi", "bf" become "bf01_oi01->bf01"."""
    spatial = "".join(str(i) for i in range(rank))
    return f"{first}{spatial}_{second}{spatial}->{third}{spatial}"


def _flat(some: Sequence[Any]) -> Any:
    if all(isinstance(one, int) for one in some):
        return math.prod(some)
    return "*".join(f"({one})" for one in some)


def _transposed(it: Lowering, x: Any, w: Any, stride: List[int], low: List[int], high: List[int],
                dilation: List[int], groups: int) -> Any:  # fmt: skip
    """The convolution that has the one with kernel w [in, out / groups, ...] as its gradient."""
    rank = len(stride)
    kernel = hg.reverse(w, axes=list(range(2, 2 + rank)))
    size = list(w.shape)
    if groups > 1:
        # To [in / groups, out, ...]: the group goes from the first dim to the second.
        cut = hg.reshape(kernel, dims=[groups, size[0] // groups, *size[1:]])
        order = [1, 0, 2, *range(3, 3 + rank)]
        moved = hg.transpose(cut, permutation=order)
        kernel = hg.reshape(moved, dims=[size[0] // groups, groups * size[1], *size[2:]])
    return hg.conv(
        x, kernel, order=_orders(rank, "bf", "io", "bf"), input_dilation=stride, pad_low=low,
        pad_high=high, kernel_dilation=dilation, groups=groups,
    )  # fmt: skip


@row("convolution")
def convolution(it: Lowering, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> Any:  # fmt: skip
    rank = len(w.shape) - 2
    stride, padding = _numbers(stride, rank, "stride"), _numbers(padding, rank, "padding")
    dilation = _numbers(dilation, rank, "dilation")
    if transposed:
        more = _numbers(output_padding, rank, "padding")
        reach = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
        low = [one - p for one, p in zip(reach, padding)]
        high = [one - p + m for one, p, m in zip(reach, padding, more)]
        made = _transposed(it, x, w, stride, low, high, dilation, groups)
    else:
        made = hg.conv(
            x, w, order=_orders(rank, "bf", "oi", "bf"), stride=stride, pad_low=padding,
            pad_high=padding, kernel_dilation=dilation, groups=groups,
        )  # fmt: skip
    if bias is None:
        return made
    return hg.add(made, hg.broadcast(bias, dims=list(made.shape), map=[1]))


def _kernel_gradient(it: Lowering, x: Any, grad: Any, w: Any, stride: List[int],
                     padding: List[int], dilation: List[int], groups: int) -> Any:  # fmt: skip
    """The gradient by w: x convolved with grad, where batch and features change places."""
    rank = len(stride)
    inner, outer = x.shape[2:], grad.shape[2:]
    if not all(isinstance(one, int) for one in [*inner, *outer, x.shape[1]]):
        raise Refused("the gradient by its kernel has an open size")
    high = [
        (k - 1) * d + (o - 1) * s + 1 - n - p
        for k, d, o, s, n, p in zip(w.shape[2:], dilation, outer, stride, inner, padding)
    ]
    if groups > 1:
        batch, features = x.shape[0], x.shape[1]
        if not isinstance(batch, int):
            raise Refused("the gradient by its kernel has groups and an open batch")
        cut = hg.reshape(x, dims=[batch, groups, features // groups, *inner])
        moved = hg.transpose(cut, permutation=[1, 0, 2, *range(3, 3 + rank)])
        x = hg.reshape(moved, dims=[groups * batch, features // groups, *inner])
    return hg.conv(
        x, grad, order=_orders(rank, "fb", "io", "fb"), stride=dilation, pad_low=padding,
        pad_high=high, kernel_dilation=stride, groups=groups,
    )  # fmt: skip


@row("convolution_backward")
def convolution_backward(it: Lowering, grad: Any, x: Any, w: Any, bias_sizes: Any, stride: Any,
                         padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                         groups: int, mask: Sequence[bool]) -> List[Any]:  # fmt: skip
    rank = len(w.shape) - 2
    stride, padding = _numbers(stride, rank, "stride"), _numbers(padding, rank, "padding")
    dilation = _numbers(dilation, rank, "dilation")
    made: List[Any] = [None, None, None]
    if mask[0] and transposed:
        made[0] = hg.conv(
            grad, w, order=_orders(rank, "bf", "oi", "bf"), stride=stride, pad_low=padding,
            pad_high=padding, kernel_dilation=dilation, groups=groups,
        )  # fmt: skip
    elif mask[0]:
        if not all(isinstance(one, int) for one in [*x.shape[2:], *grad.shape[2:]]):
            raise Refused("the gradient by its input has an open size")
        reach = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
        low = [one - p for one, p in zip(reach, padding)]
        high = [
            n - ((o - 1) * s + 1) - l + r
            for n, o, s, l, r in zip(x.shape[2:], grad.shape[2:], stride, low, reach)
        ]
        made[0] = _transposed(it, grad, w, stride, low, high, dilation, groups)
    if mask[1]:
        a, b = (grad, x) if transposed else (x, grad)
        made[1] = _kernel_gradient(it, a, b, w, stride, padding, dilation, groups)
    if mask[2]:
        made[2] = hg.reduce(grad, kind="sum", axes=[0, *range(2, 2 + rank)])
    return made


# ---- Windows -----------------------------------------------------------------------------------


class _Window:
    """The windows of a pooling op over the last dims: PyTorch says how many there are."""

    def __init__(self, it: Lowering, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any,
                 rank: int, results: Optional[Sequence[Any]] = None) -> None:  # fmt: skip
        self.lead = len(x.shape) - rank
        self.kernel = _numbers(kernel, rank, "window")
        self.stride = _numbers(stride, rank, "stride") if stride not in (None, []) else self.kernel
        self.low = _numbers(padding, rank, "padding")
        self.dilation = _numbers(dilation, rank, "dilation")
        self.inner = list(x.shape[self.lead :])
        counts = it.dims[self.lead :] if results is None else list(results)
        if not all(isinstance(one, int) for one in [*self.inner, *counts]):
            raise Refused("its windows slide over an open size")
        self.counts = counts
        self.high = [
            (o - 1) * s + d * (k - 1) + 1 - n - p
            for o, s, d, k, n, p in zip(
                counts, self.stride, self.dilation, self.kernel, self.inner, self.low
            )
        ]

    def reduce(self, x: Any, kind: str) -> Any:
        one, zero = [1] * self.lead, [0] * self.lead
        return hg.window_reduce(
            x, kind=kind, window=one + self.kernel, stride=one + self.stride,
            pad_low=zero + self.low, pad_high=zero + self.high,
            window_dilation=one + self.dilation,
        )  # fmt: skip


def _places(it: Lowering, x: Any, at: _Window) -> Any:
    """The first place of the greatest element of each window, and where it lies in the plane."""
    lowest = float("-inf") if x.dtype.startswith(("f", "bf")) else None
    if lowest is None:
        raise Refused("it looks for the places of integers")
    edge = [max(one, 0) for one in at.high]
    wide = hg.pad(x, it.number(lowest, x.dtype), low=[0] * at.lead + at.low,
                  high=[0] * at.lead + edge)  # fmt: skip
    dims = list(x.shape[: at.lead]) + at.counts
    best = where = None
    for index in numpy.ndindex(*at.kernel):
        first = [i * d for i, d in zip(index, at.dilation)]
        limit = [f + (o - 1) * s + 1 for f, o, s in zip(first, at.counts, at.stride)]
        one = hg.slice(wide, start=[0] * at.lead + first, limit=dims[: at.lead] + limit,
                       stride=[1] * at.lead + at.stride)  # fmt: skip
        place = numpy.zeros(at.counts, numpy.int64)
        for i, size in enumerate(at.inner):
            line = numpy.arange(at.counts[i]) * at.stride[i] - at.low[i] + first[i]
            line = numpy.maximum(line, 0)  # a window of -inf alone has its place inside, too
            shape = [-1 if j == i else 1 for j in range(len(at.counts))]
            place = place * size + line.reshape(shape)
        lies = it.to(it.builder.constant(place), dims)
        if best is None:
            best, where = one, lies
            continue
        better = hg.or_(hg.compare(one, best, direction="gt"), hg.is_nan(one))
        best, where = hg.select(better, one, best), hg.select(better, lies, where)
    return best, where


@row("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(it: Lowering, x: Any, kernel: Any, stride: Any = None, padding: Any = 0,
             dilation: Any = 1, ceil_mode: bool = False) -> List[Any]:  # fmt: skip
    rank = 2 if "2d" in str(it.node.target) else 3
    at = _Window(it, x, kernel, stride, padding, dilation, rank)
    if not it.is_used(1):
        return [at.reduce(x, "max"), None]
    return list(_places(it, x, at))


@row("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def max_pool_backward(it: Lowering, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any,
                      dilation: Any, ceil_mode: bool, indices: Any) -> Any:  # fmt: skip
    rank = 2 if "2d" in str(it.node.target) else 3
    lead = len(x.shape) - rank
    rows, plane = _flat(x.shape[:lead]), _flat(x.shape[lead:])
    count = _flat(grad.shape[lead:])
    made = hg.scatter(
        it.full(0, [rows, plane], grad.dtype), hg.reshape(indices, dims=[rows, count]),
        hg.reshape(grad, dims=[rows, count]), window_dims=[], inserted_dims=[1],
        operand_batch_dims=[0], index_batch_dims=[0], index_map=[1], index_vector_dim=2,
        combine="add",
    )  # fmt: skip
    return hg.reshape(made, dims=list(x.shape))


def _window_counts(at: _Window, count_padding: bool, divisor: Any) -> Any:
    """By which each sum is divided: a number, or one by window."""
    if divisor is not None:
        return float(divisor)
    counts = numpy.ones([], numpy.float64)
    for i, size in enumerate(at.inner):
        first = numpy.arange(at.counts[i]) * at.stride[i] - at.low[i]
        last = numpy.minimum(first + at.kernel[i], size + at.low[i])
        if not count_padding:
            first, last = numpy.maximum(first, 0), numpy.minimum(last, size)
        shape = [-1 if j == i else 1 for j in range(len(at.inner))]
        counts = counts * (last - first).reshape(shape)
    return float(counts.flat[0]) if (counts == counts.flat[0]).all() else counts


def _divided(it: Lowering, x: Any, by: Any) -> Any:
    if isinstance(by, float):
        return hg.div(x, it.number(by, x.dtype))
    return hg.div(x, hg.cast(it.builder.constant(by), dtype=x.dtype))


@row("avg_pool2d", "avg_pool3d", "avg_pool1d")
def avg_pool(it: Lowering, x: Any, kernel: Any, stride: Any = None, padding: Any = 0,
             ceil_mode: bool = False, count_include_pad: bool = True,
             divisor_override: Any = None) -> Any:  # fmt: skip
    rank = int(str(it.node.target).split("avg_pool")[1][0])
    at = _Window(it, x, kernel, stride, padding, 1, rank)
    summed = at.reduce(it.wide(x), "sum")
    return it.value(
        _divided(it, summed, _window_counts(at, count_include_pad, divisor_override)), it.dtype
    )


@row("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(it: Lowering, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any,
                      ceil_mode: bool, count_include_pad: bool, divisor: Any) -> Any:  # fmt: skip
    rank = int(str(it.node.target).split("avg_pool")[1][0])
    lead = len(x.shape) - rank
    at = _Window(it, x, kernel, stride, padding, 1, rank, results=grad.shape[lead:])
    each = _divided(it, it.wide(grad), _window_counts(at, count_include_pad, divisor))
    one, zero = [1] * lead, [0] * lead
    low = [k - 1 - p for k, p in zip(at.kernel, at.low)]
    high = [n + p - ((o - 1) * s + 1) for n, p, o, s in
            zip(at.inner, at.low, at.counts, at.stride)]  # fmt: skip
    made = hg.window_reduce(
        each, kind="sum", window=one + at.kernel, input_dilation=one + at.stride,
        pad_low=zero + low, pad_high=zero + high,
    )  # fmt: skip
    return it.value(made, it.dtype)


def _along(it: Lowering, x: Any, matrix: Any, axis: int) -> Any:
    """x with the dim replaced by the product with a constant matrix [new, old]."""
    weights = hg.cast(it.builder.constant(numpy.ascontiguousarray(matrix)), dtype=x.dtype)
    made = hg.dot(x, weights, lhs_contract=[axis], rhs_contract=[1])
    rank = len(x.shape)
    order = [i if i < axis else i - 1 for i in range(rank)]
    order[axis] = rank - 1
    return hg.transpose(made, permutation=order)


def _averages(size: int, count: int) -> Any:
    matrix = numpy.zeros((count, size))
    for i in range(count):
        first, last = i * size // count, -(-(i + 1) * size // count)
        matrix[i, first:last] = 1 / (last - first)
    return matrix


def _windows(it: Lowering, x: Any, axis: int, size: int, count: int) -> Any:
    """Means of `count` windows; an infinity counts in its own ones alone."""
    means = []
    for i in range(count):
        first, last = i * size // count, -(-(i + 1) * size // count)
        means.append(mean_of(it, part(it, x, axis, first, last - first), [axis]))
    return means[0] if count == 1 else hg.concat(*means, axis=axis)


@row("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_adaptive_avg_pool2d_backward")
def adaptive_avg_pool(it: Lowering, x: Any, other: Any) -> Any:
    rank = 3 if "3d" in str(it.node.target) else 2
    backward = "backward" in str(it.node.target)
    made = it.wide(x)
    for axis in range(len(x.shape) - rank, len(x.shape)):
        size, count = x.shape[axis], it.dims[axis]
        if not isinstance(size, int) or not isinstance(count, int):
            raise Refused("it averages an open size")
        if size != count:
            if backward:
                made = _along(it, made, _averages(count, size).T, axis)
            else:
                made = _windows(it, made, axis, size, count)
    return it.value(made, it.dtype)


@row("upsample_bilinear2d", "upsample_bilinear2d.vec", "upsample_bicubic2d", "upsample_nearest2d",
     "upsample_nearest2d.vec", "upsample_nearest1d", "upsample_linear1d",
     "upsample_bicubic2d.vec")  # fmt: skip
def upsample(it: Lowering, x: Any, size: Any, *args: Any) -> Any:
    name = str(it.node.target)
    rest = list(args)
    corners = False if "nearest" in name else rest.pop(0)
    factors = rest[0] if rest and isinstance(rest[0], (list, tuple)) else rest
    rank = 1 if "1d" in name else 2
    scales: List[float] = []
    if factors and all(isinstance(one, float) for one in factors) and not corners:
        scales = [1.0, 1.0, *factors]
    mode = "nearest" if "nearest" in name else "cubic" if "cubic" in name else "linear"
    coordinates = "align_corners" if corners else "half_pixel"
    assert len(x.shape) == rank + 2
    return hg.resize(
        x, sizes=it.dims, scales=scales, mode=mode,
        coordinates="asymmetric" if mode == "nearest" else coordinates,
        nearest="floor" if mode == "nearest" else "round_prefer_floor",
    )  # fmt: skip


# ---- Norms -------------------------------------------------------------------------------------


@row("_softmax", "_safe_softmax")
def softmax(it: Lowering, x: Any, dim: int, half_to_float: Any = False) -> Any:
    wide = it.wide(it.value(x, it.dtype))
    if not x.shape:
        return it.full(1, [], it.dtype)
    made = hg.softmax(wide, axis=it.axis(dim))
    if "safe" in str(it.node.target):  # A row of -inf alone is 0.
        lowest = it.number(float("-inf"), wide.dtype)
        none = hg.reduce(hg.compare(wide, lowest, direction="eq"), kind="and", axes=[it.axis(dim)])
        dims = [1 if i == it.axis(dim) else one for i, one in enumerate(x.shape)]
        made = hg.select(hg.reshape(none, dims=dims), it.full(0, made.shape, made.dtype), made)
    return it.value(made, it.dtype)


@row("_log_softmax")
def log_softmax(it: Lowering, x: Any, dim: int, half_to_float: bool = False) -> Any:
    wide = it.wide(it.value(x, it.dtype))
    return it.value(hg.log_softmax(wide, axis=it.axis(dim)), it.dtype)


def _normalized(it: Lowering, x: Any, axes: List[int], epsilon: float) -> Any:
    """The standardized value, the mean and 1 / sqrt(variance); these keep the dims as 1."""
    average = mean_of(it, x, axes)
    apart = hg.sub(x, average)
    spread = mean_of(it, hg.mul(apart, apart), axes)
    scale = hg.rsqrt(hg.add(spread, it.number(epsilon, x.dtype)))
    return hg.mul(apart, scale), average, scale


def _scaled(it: Lowering, x: Any, weight: Any, bias: Any, map_to: List[int]) -> Any:
    dims = list(x.shape)
    if weight is not None:
        x = hg.mul(x, hg.broadcast(it.value(weight, x.dtype), dims=dims, map=map_to))
    if bias is not None:
        x = hg.add(x, hg.broadcast(it.value(bias, x.dtype), dims=dims, map=map_to))
    return x


@row("native_layer_norm")
def layer_norm(it: Lowering, x: Any, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    rank = len(x.shape)
    axes = list(range(rank - len(shape), rank))
    wide = it.wide(x)
    if not it.is_used(1) and not it.is_used(2):
        if weight is None and bias is not None:
            weight = it.full(1, [x.shape[i] for i in axes], wide.dtype)
        given = [wide] + [it.value(one, wide.dtype) for one in (weight, bias) if one is not None]
        made = hg.layer_norm(*given, axis=axes[0], epsilon=epsilon)
        return [it.value(made, it.dtype), None, None]
    made, average, scale = _normalized(it, wide, axes, epsilon)
    made = it.value(_scaled(it, made, weight, bias, axes), it.dtype)
    types = [str(one.dtype) for one in it.results()[1:]]
    kinds = ["f32" if "float32" in one else it.dtype for one in types]
    return [made, it.value(average, kinds[0]), it.value(scale, kinds[1])]


@row("native_group_norm")
def group_norm(it: Lowering, x: Any, weight: Any, bias: Any, batch: Any, channels: int, plane: Any,
               groups: int, epsilon: float) -> List[Any]:  # fmt: skip
    wide = it.wide(x)
    cut = hg.reshape(wide, dims=[x.shape[0], groups, channels // groups, *x.shape[2:]])
    made, average, scale = _normalized(it, cut, list(range(2, len(cut.shape))), epsilon)
    made = _scaled(it, hg.reshape(made, dims=list(x.shape)), weight, bias, [1])
    small = [hg.reshape(one, dims=[x.shape[0], groups]) for one in (average, scale)]
    return [it.value(one, it.dtype) for one in (made, *small)]


@row("_native_batch_norm_legit_no_training")
def batch_norm(it: Lowering, x: Any, weight: Any, bias: Any, mean: Any, variance: Any,
               momentum: float, epsilon: float) -> List[Any]:  # fmt: skip
    wide = it.wide(x)
    one = it.full(1, mean.shape, wide.dtype) if weight is None else weight
    zero = it.full(0, mean.shape, wide.dtype) if bias is None else bias
    rest = [it.value(each, wide.dtype) for each in (one, zero, mean, variance)]
    made = it.value(hg.batch_norm(wide, *rest, epsilon=epsilon), it.dtype)
    nothing = [it.full(0, [0], "f32"), it.full(0, [0], "f32")]
    return [made] + [it.value(each, str(each.dtype)) for each in nothing]


# ---- Attention ---------------------------------------------------------------------------------


def _scores(it: Lowering, query: Any, key: Any, causal: bool, mask: Any, scale: Any) -> Any:
    """The products of queries and keys, [batch, heads, queries, keys], -inf where none is seen."""
    made = hg.dot(query, key, lhs_batch=[0, 1], rhs_batch=[0, 1], lhs_contract=[3],
                  rhs_contract=[3])  # fmt: skip
    made = hg.mul(made, it.number(scale, made.dtype))
    lowest = it.number(float("-inf"), made.dtype)
    if causal:
        dims = list(made.shape[2:])
        seen = hg.compare(it.iota("i64", dims, 0), it.iota("i64", dims, 1), direction="ge")
        made = hg.select(it.to(seen, made.shape), made, it.to(lowest, made.shape))
    if mask is not None and mask.dtype == "bool":
        made = hg.select(it.to(mask, made.shape), made, it.to(lowest, made.shape))
    elif mask is not None:
        made = hg.add(made, it.value(mask, made.dtype))
    return made


def _plain(dropout: float, query: Any) -> None:
    if dropout:
        raise Refused("it drops at random")
    if len(query.shape) != 4:
        raise Refused("its queries have another rank than 4")


@row("_scaled_dot_product_flash_attention_for_cpu")
def attention(it: Lowering, query: Any, key: Any, value: Any, dropout: float = 0.0,
              causal: bool = False, *, attn_mask: Any = None,
              scale: Any = None) -> List[Any]:  # fmt: skip
    _plain(dropout, query)
    factor = query.shape[3] ** -0.5 if scale is None else scale
    query, key, value = (it.wide(one) for one in (query, key, value))
    scores = _scores(it, query, key, causal, attn_mask, factor)
    last = len(scores.shape) - 1
    # A row that is masked wholly has weights of 0.
    top = hg.reduce(scores, kind="max", axes=[last])
    none = hg.compare(top, it.number(float("-inf"), top.dtype), direction="eq")
    top = hg.select(none, it.full(0, top.shape, top.dtype), top)
    weights = hg.softmax(scores, axis=last)
    gone = it.to(hg.reshape(none, dims=[*none.shape, 1]), weights.shape)
    weights = hg.select(gone, it.full(0, weights.shape, weights.dtype), weights)
    made = hg.dot(weights, value, lhs_batch=[0, 1], rhs_batch=[0, 1], lhs_contract=[3],
                  rhs_contract=[2])  # fmt: skip
    made = it.value(made, it.dtype)
    if not it.is_used(1):
        return [made, None]
    above = hg.exp(hg.sub(scores, hg.reshape(top, dims=[*top.shape, 1])))
    total = hg.reduce(above, kind="sum", axes=[last])
    total = hg.select(none, it.full(1, total.shape, total.dtype), total)
    return [made, hg.add(top, hg.log(total))]


@row("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(it: Lowering, grad: Any, query: Any, key: Any, value: Any, out: Any,
                       logsumexp: Any, dropout: float, causal: bool, *, attn_mask: Any = None,
                       scale: Any = None) -> List[Any]:  # fmt: skip
    _plain(dropout, query)
    factor = query.shape[3] ** -0.5 if scale is None else scale
    grad, query, key, value, out = (it.wide(one) for one in (grad, query, key, value, out))
    scores = _scores(it, query, key, causal, attn_mask, factor)
    total = hg.reshape(it.value(logsumexp, scores.dtype), dims=[*logsumexp.shape, 1])
    weights = hg.exp(hg.sub(scores, total))

    def contract(a: Any, b: Any, i: int, j: int) -> Any:
        return hg.dot(a, b, lhs_batch=[0, 1], rhs_batch=[0, 1], lhs_contract=[i], rhs_contract=[j])

    by_value = contract(weights, grad, 2, 2)
    shared = hg.reduce(hg.mul(grad, out), kind="sum", axes=[3])
    by_weights = hg.sub(contract(grad, value, 3, 3), hg.reshape(shared, dims=[*shared.shape, 1]))
    by_scores = hg.mul(hg.mul(weights, by_weights), it.number(factor, weights.dtype))
    made = [contract(by_scores, key, 3, 2), contract(by_scores, query, 2, 2), by_value]
    return [it.value(one, it.dtype) for one in made]


# ---- Indices -----------------------------------------------------------------------------------


def _from_front(it: Lowering, index: Any, size: Any) -> Any:
    """Indices below 0 count from the end."""
    index = it.value(index, "i64")
    end = it.value(size, "i64")
    below = hg.compare(index, it.number(0, "i64"), direction="lt")
    return hg.select(below, hg.add(index, end), index)


def _rows_of(it: Lowering, x: Any, index: Any, axis: int) -> Any:
    """x with the dim replaced by the elements at the indices, which may have any rank."""
    dims, rank = list(x.shape), len(index.shape)
    sizes = [1 if i == axis else one for i, one in enumerate(dims)]
    offset = [i if i < axis else i + rank - 1 for i in range(len(dims)) if i != axis]
    return hg.gather(
        x, it.value(index, "i64"), offset_dims=offset, collapsed_dims=[axis], index_map=[axis],
        index_vector_dim=rank, sizes=sizes,
    )  # fmt: skip


@row("embedding")
def embedding(it: Lowering, table: Any, index: Any, *_: Any) -> Any:
    return _rows_of(it, table, index, 0)


@row("index_select")
def index_select(it: Lowering, x: Any, dim: int, index: Any) -> Any:
    if not x.shape:
        return x
    if not index.shape:
        index = hg.reshape(index, dims=[1])
    return _rows_of(it, x, index, it.axis(dim))


class _Indexed:
    """x[i, :, j]: the dims that are indexed, all indices as vectors, and where windows go."""

    def __init__(self, it: Lowering, x: Any, indices: Sequence[Any]) -> None:
        at = [i for i, one in enumerate(indices) if one is not None]
        some = [indices[i] for i in at]
        if any(one.dtype == "bool" for one in some):
            raise Refused("it takes what a mask marks: its size depends on data")
        rank = max(len(one.shape) for one in some)
        shape: List[Any] = [1] * rank
        for one in some:
            for i, size in enumerate(one.shape):
                place = rank - len(one.shape) + i
                shape[place] = size if shape[place] == 1 else shape[place]
        places = it.given(0).shape
        columns = []
        for i, one in zip(at, some):
            index = it.to(_from_front(it, one, places[i]), shape)
            columns.append(hg.reshape(index, dims=[*shape, 1]))
        self.vectors = columns[0] if len(columns) == 1 else hg.concat(*columns, axis=rank)
        self.axes, self.shape = at, shape
        rest = [i for i in range(len(x.shape)) if i not in at]
        together = at == list(range(at[0], at[0] + len(at)))
        self.first = at[0] if together else 0  # where the dims of the indices stand
        self.offset = [i if i < self.first else i + rank for i in range(len(rest))]
        self.sizes = [1 if i in at else one for i, one in enumerate(x.shape)]
        left = [x.shape[i] for i in rest]
        self.dims = [*left[: self.first], *shape, *left[self.first :]]


@row("index.Tensor", "_unsafe_index.Tensor")
def index(it: Lowering, x: Any, indices: Sequence[Any]) -> Any:
    at = _Indexed(it, x, indices)
    return hg.gather(
        x, at.vectors, offset_dims=at.offset, collapsed_dims=at.axes, index_map=at.axes,
        index_vector_dim=len(at.shape), sizes=at.sizes,
    )  # fmt: skip


@row("index_put", "_unsafe_index_put")
def index_put(it: Lowering, x: Any, indices: Sequence[Any], values: Any,
              accumulate: bool = False) -> Any:  # fmt: skip
    some = [one for one in indices if one is not None]
    if len(some) == 1 and some[0].dtype == "bool" and not values.shape and not accumulate:
        mask, first = some[0], list(indices).index(some[0])
        places = list(range(first, first + len(mask.shape)))
        marked = hg.broadcast(mask, dims=list(x.shape), map=places)
        return hg.select(marked, it.to(it.value(values, x.dtype), x.shape), x)
    at = _Indexed(it, x, indices)
    return hg.scatter(
        x, at.vectors, it.to(it.value(values, x.dtype), at.dims), window_dims=at.offset,
        inserted_dims=at.axes, index_map=at.axes, index_vector_dim=len(at.shape),
        combine="add" if accumulate else "replace",
    )  # fmt: skip


def _cut(it: Lowering, x: Any, dims: Sequence[Any], but: int = -1) -> Any:
    """The first elements of each dim, as many as dims says."""
    wanted = [x.shape[i] if i == but else one for i, one in enumerate(dims)]
    if list(x.shape) == wanted:
        return x
    return hg.slice(x, start=[0] * len(wanted), limit=wanted)


def _paired(index: Any, axis: int) -> Any:
    """The attributes of a gather or a scatter that goes along one dim, by line."""
    others = [i for i in range(len(index.shape)) if i != axis]
    return {"operand_batch_dims": others, "index_batch_dims": others, "index_map": [axis],
            "index_vector_dim": len(index.shape)}  # fmt: skip


@row("gather")
def gather(it: Lowering, x: Any, dim: int, index: Any, **_: Any) -> Any:
    if not x.shape:
        return it.to(x, index.shape)
    axis = it.axis(dim)
    return hg.gather(
        _cut(it, x, index.shape, axis), it.value(index, "i64"), offset_dims=[],
        collapsed_dims=[axis], sizes=[1] * len(x.shape), **_paired(index, axis),
    )  # fmt: skip


_COMBINE = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max",
            "amin": "min", None: "replace"}  # fmt: skip


@row("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add",
     "scatter_reduce.two")  # fmt: skip
def scatter(it: Lowering, x: Any, dim: int, index: Any, source: Any, reduce: Any = None, *,
            include_self: bool = True) -> Any:  # fmt: skip
    if reduce not in _COMBINE or not include_self:
        raise Refused(f"it combines by {reduce}, the value itself left out or divided")
    if not x.shape:
        raise Refused("it writes to a scalar")
    combine = "add" if "scatter_add" in str(it.node.target) else _COMBINE[reduce]
    axis, dims = it.axis(dim), list(index.shape)
    update = it.value(source, x.dtype)
    update = it.to(update, dims) if not update.shape else _cut(it, update, dims)
    index = it.value(index, "i64")
    if all(i == axis or one == dims[i] for i, one in enumerate(x.shape)):
        return hg.scatter(x, index, update, window_dims=[], inserted_dims=[axis], combine=combine,
                          **_paired(index, axis))  # fmt: skip
    columns = [index if i == axis else it.iota("i64", dims, i) for i in range(len(dims))]
    vectors = hg.concat(*(hg.reshape(one, dims=[*dims, 1]) for one in columns), axis=len(dims))
    every = list(range(len(dims)))
    return hg.scatter(x, vectors, update, window_dims=[], inserted_dims=every, index_map=every,
                      index_vector_dim=len(dims), combine=combine)  # fmt: skip


@row("embedding_dense_backward")
def embedding_backward(it: Lowering, grad: Any, index: Any, count: Any, padding: int,
                       by_frequency: bool) -> Any:  # fmt: skip
    if by_frequency:
        raise Refused("it divides by how often an index occurs")
    width = grad.shape[-1]
    index = it.value(index, "i64")
    if padding >= 0:  # That row has no gradient: its index is out of range.
        is_padding = hg.compare(index, it.number(padding, "i64"), direction="eq")
        index = hg.select(is_padding, it.value(count, "i64"), index)
    rank = len(index.shape)
    made = hg.scatter(
        it.full(0, [it.sizes.of(count), width], grad.dtype), index, grad, window_dims=[rank],
        inserted_dims=[0], index_map=[0], index_vector_dim=rank, combine="add",
    )  # fmt: skip
    return kept(it, made)
