#include <algorithm>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"

// Ops that move elements: all are linear, and the way back moves the cotangents to where the
// elements came from. An element that was copied several times gets the sum.

namespace hone {

namespace {

std::vector<Value> broadcast_back(const TransposeCall& call) {
  const Ints& map = call.op.ints("map");
  Type x = call.type(0);
  Ints repeated;
  for (int i = 0; i < call.cotangent().rank(); ++i) {
    auto at = std::find(map.begin(), map.end(), i);
    const bool is_kept =
        at != map.end() && x.dim(static_cast<int>(at - map.begin())) == call.cotangent().dim(i);
    if (!is_kept) repeated.push_back(i);
  }
  Value sum = repeated.empty() ? call.cotangent() : reduce_sum(call.cotangent(), repeated);
  return {reshape(sum, dims_of(x))};
}

std::vector<Value> reshape_back(const TransposeCall& call) {
  return {reshape(call.cotangent(), dims_of(call.type(0)))};
}

std::vector<Value> transpose_back(const TransposeCall& call) {
  const Ints& permutation = call.op.ints("permutation");
  Ints inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {transpose(call.cotangent(), inverse)};
}

Value padded(Value x, Value value, const Dims& low, const Dims& high, const Ints& interior = {}) {
  return x.builder().op(Opcode::pad, {x, value},
                        {{"low", low}, {"high", high}, {"interior", interior}});
}

// How far the elements reach with `gap` places between neighbours.
Dim spread(Dim size, int64_t gap) { return size.is(0) ? size : size + (size - 1) * gap; }

std::vector<Value> slice_back(const TransposeCall& call) {
  const Dims& start = call.op.dims("start");
  const Ints& stride = call.op.ints("stride");
  Value ct = call.cotangent();
  Ints gaps;
  Dims high;
  for (int i = 0; i < ct.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    gaps.push_back(entry_or(stride, i, 1) - 1);
    if (gaps[at] > 0 && !ct.dim(i).is(0) && !provably_le(1, ct.dim(i))) {
      call.builder.fail(unsupported("the derivative of strides puts zeros between the elements of "
                                    "dim {}, which may have none: its size is {}",
                                    i, ct.dim(i).to_string())
                            .with_hint("give the symbols sizes first (--dim NAME=SIZE)"));
      return {zeros_of(call.builder, call.type(0))};
    }
    high.push_back(call.type(0).dim(i) - start[at] - spread(ct.dim(i), gaps[at]));
  }
  return {padded(ct, call.builder.scalar(ct.dtype(), 0), start, high, gaps)};
}

// The elements that the pad added are cut away, and those that it cut away get zeros.
Value pad_back_to_operand(const TransposeCall& call) {
  Value ct = call.cotangent();
  Type x = call.type(0);
  Dims low = call.op.dims("low"), high = call.op.dims("high");
  Dims start(low.size(), 0), limit;
  Ints stride;
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] = 0 - low[i];
    high[i] = 0 - high[i];
    const int64_t gap = entry_or(call.op.ints("interior"), static_cast<int>(i), 0);
    stride.push_back(gap + 1);
    limit.push_back(spread(x.dim(static_cast<int>(i)), gap));
  }
  Value whole = padded(ct, call.builder.scalar(ct.dtype(), 0), low, high);
  return call.builder.op(Opcode::slice, {whole},
                         {{"start", start}, {"limit", limit}, {"stride", stride}});
}

// The sum over the places that hold the padding value.
Value pad_back_to_value(const TransposeCall& call) {
  Builder& b = call.builder;
  Value ct = call.cotangent();
  Value outside = padded(zeros_of(b, call.type(0)), b.scalar(ct.dtype(), 1), call.op.dims("low"),
                         call.op.dims("high"), call.op.ints("interior"));
  Ints axes;
  for (int i = 0; i < ct.rank(); ++i) axes.push_back(i);
  return reduce_sum(ct * outside, axes);
}

std::vector<Value> pad_back(const TransposeCall& call) {
  return {call.linear[0] ? pad_back_to_operand(call) : Value(),
          call.linear[1] ? pad_back_to_value(call) : Value()};
}

std::vector<Value> concat_back(const TransposeCall& call) {
  const int axis = static_cast<int>(call.op.integer("axis"));
  std::vector<Value> parts;
  Dim begin = 0;
  for (size_t i = 0; i < call.types.size(); ++i) {
    const Dim end = begin + call.type(i).dim(axis);
    parts.push_back(call.linear[i] ? slice(call.cotangent(), axis, begin, end) : Value());
    begin = end;
  }
  return parts;
}

std::vector<Value> reverse_back(const TransposeCall& call) {
  return {reverse(call.cotangent(), call.op.ints("axes"))};
}

}  // namespace

const Derivative derivative_broadcast = {.transpose = broadcast_back};
const Derivative derivative_reshape = {.transpose = reshape_back};
const Derivative derivative_transpose = {.transpose = transpose_back};
const Derivative derivative_slice = {.transpose = slice_back};
const Derivative derivative_pad = {.transpose = pad_back};
const Derivative derivative_concat = {.transpose = concat_back};
const Derivative derivative_reverse = {.transpose = reverse_back};

}  // namespace hone
