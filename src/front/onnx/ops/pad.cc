#include <algorithm>

#include "front/onnx/flow.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"

// Tensors made larger or smaller at their ends, and parts of them put in another order.

namespace hone::onnx_io {
namespace {

// Position i of the result is position i - low of x; what is outside becomes `fill`.
Value placed(Value x, int axis, Value low, Dim size, Value fill) {
  Builder& b = x.builder();
  Value index = iota(b, DType::i64, {size}, 0) - low;
  Value inside = binary(Opcode::and_, compare("ge", index, 0),
                        compare("lt", index, size_value(b, x.dim(axis))));
  Value y = looked_up(x, index, axis);
  return select(broadcast(inside, y.dims(), {axis}), y, fill);
}

// How many elements of x stand at one place of these axes.
Dim elements_beside(Value x, const Ints& axes) {
  Dim elements = 1;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) elements *= x.dim(axis);
  return elements;
}

// ---- Pad ----------------------------------------------------------------------------------------

struct AxisPads {
  int axis = 0;
  Number low, high;
  Dim size = 0;  // of the result
};

std::vector<AxisPads> pads_of(Node& n, Value x) {
  std::vector<Number> pads;
  if (n.version() < 11) {
    for (int64_t p : n.ints(n.version() < 2 ? "paddings" : "pads")) pads.push_back({Dim(p), {}});
  } else {
    pads = numbers_of(n, 1);
  }
  Ints axes = counting(0, x.rank());
  if (n.version() >= 18 && n.has(3)) axes = distinct_axes(n, n.integers(3), x.rank());
  if (pads.size() != 2 * axes.size())
    n.bad("{} pads for {} axes, want {}", pads.size(), axes.size(), 2 * axes.size());
  std::vector<AxisPads> result;
  std::vector<Number> measured;  // sizes of the result
  size_t unknown = 0;
  Dim fixed = elements_beside(x, axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPads a = {static_cast<int>(axes[i]), pads[i], pads[axes.size() + i], 0};
    const Dim dim = x.dim(a.axis);
    if (a.low.known && a.high.known) {
      a.size = *a.low.known + dim + *a.high.known;
      if (a.size.range().low < 0)
        n.bad("pads {} and {} leave the size {} to axis {}", a.low.known->to_string(),
              a.high.known->to_string(), a.size.to_string(), a.axis);
      fixed *= a.size;
      measured.emplace_back(a.size);
    } else {
      Builder& b = n.builder();
      measured.emplace_back(maximum(a.low.in(b) + size_value(b, dim) + a.high.in(b), 0));
      ++unknown;
    }
    result.push_back(a);
  }
  const Dims sizes = n.sizes(measured, room_for_each(fixed, unknown));
  for (size_t i = 0; i < result.size(); ++i) result[i].size = sizes[i];
  return result;
}

Value filled(Node& n, Value x, const std::vector<AxisPads>& pads, Value fill) {
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  for (const AxisPads& a : pads) {
    if (a.low.known && a.high.known) {
      low[static_cast<size_t>(a.axis)] = *a.low.known;
      high[static_cast<size_t>(a.axis)] = *a.high.known;
    } else {
      x = placed(x, a.axis, a.low.in(n.builder()), a.size, fill);
    }
  }
  if (std::all_of(low.begin(), low.end(), [](Dim d) { return d.is(0); }) && low == high) return x;
  return n.builder().op(Opcode::pad, {x, fill}, {{"low", low}, {"high", high}});
}

// The source of a position that may be outside of 0..size-1.
Value source_of(Value index, Value size, std::string_view mode) {
  if (mode == "edge") return maximum(minimum(index, size - 1), 0);
  if (mode == "wrap") return floor_mod(index, maximum(size, 1));
  Value period = maximum(size * 2 - 2, 1);  // reflect: there and back without the ends
  Value place = floor_mod(index, period);
  return minimum(place, period - place);
}

Value continued(Node& n, Value x, const AxisPads& a, std::string_view mode) {
  if (a.low.known && a.low.known->is(0) && a.high.known && a.high.known->is(0)) return x;
  Builder& b = n.builder();
  Value low = a.low.in(b);
  // Negative numbers remove elements before the rest is continued.
  const Dim dim = x.dim(a.axis);
  Dim start = 0, end = dim;
  if (a.low.known && a.low.known->range().high < 0) start = Dim(0) - *a.low.known;
  if (a.high.known && a.high.known->range().high < 0) end = dim + *a.high.known;
  if (!(start == 0)) low = b.scalar(DType::i64, 0);
  if (!(start == 0) || !(end == dim)) x = slice(x, a.axis, start, end);
  Value index = iota(b, DType::i64, {a.size}, 0) - low;
  return looked_up(x, source_of(index, size_value(b, x.dim(a.axis)), mode), a.axis);
}

}  // namespace

void map_pad(Node& n) {
  Value x = n.in();
  const std::string mode = n.word("mode", "constant");
  const bool constant = mode == "constant", wraps = n.version() >= 19 && mode == "wrap";
  if (!constant && mode != "reflect" && mode != "edge" && !wraps) n.bad("mode is '{}'", mode);
  const double value = n.version() < 11 ? n.real("value", 0) : 0;
  if (n.version() >= 11) n.refuse_endless(1);
  const std::vector<AxisPads> pads = pads_of(n, x);
  if (constant) {
    Value fill =
        n.version() >= 11 && n.has(2) ? scalar_of(n, 2) : n.builder().scalar(x.dtype(), value);
    n.out(filled(n, x, pads, fill));
    return;
  }
  if (n.version() >= 11) n.ignore_operand(2);
  for (const AxisPads& a : pads) x = continued(n, x, a, mode);
  n.out(x);
}

// ---- CenterCropPad ------------------------------------------------------------------------------

namespace {

Value centered(Node& n, Value x, int axis, Dim size) {
  const Dim dim = x.dim(axis);
  Builder& b = n.builder();
  Value zero = b.scalar(x.dtype(), 0);
  if (size.range().low < 0) n.bad("the size {} is negative", size.to_string());
  if (size == dim) return x;
  if (provably_le(size, dim)) {
    const Dim start = floordiv(dim - size, 2);
    return slice(x, axis, start, start + size);
  }
  if (provably_le(dim, size)) {
    Dims low(static_cast<size_t>(x.rank()), 0), high = low;
    const size_t at = static_cast<size_t>(axis);
    low[at] = floordiv(size - dim, 2);
    high[at] = size - dim - low[at];
    return b.op(Opcode::pad, {x, zero}, {{"low", low}, {"high", high}});
  }
  // Division rounds toward zero, so that both cases have the odd element at the end.
  return placed(x, axis, (size_value(b, size) - size_value(b, dim)) / 2, size, zero);
}

}  // namespace

void map_center_crop_pad(Node& n) {
  Value x = n.in();
  Ints axes = counting(0, x.rank());
  if (n.has_attribute("axes")) axes = distinct_axes(n, n.ints("axes"), x.rank());
  const Dims sizes = measured_sizes(n, 1, elements_beside(x, axes));
  if (sizes.size() != axes.size()) n.bad("{} sizes for {} axes", sizes.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) x = centered(n, x, static_cast<int>(axes[i]), sizes[i]);
  n.out(x);
}

// ---- ReverseSequence ----------------------------------------------------------------------------

void map_reverse_sequence(Node& n) {
  Value x = n.in(), lengths = n.in(1);
  n.require_rank(x, "the input", 2);
  const int64_t batch_axis = n.integer("batch_axis", 1), time_axis = n.integer("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0)
    n.bad("batch_axis is {} and time_axis is {}, want 0 and 1 in some order", batch_axis,
          time_axis);
  const int batch = static_cast<int>(batch_axis), time = static_cast<int>(time_axis);
  if (lengths.rank() != 1 || !(lengths.dim(0) == x.dim(batch)))
    n.bad("the lengths have type {}, want one for each of the {} sequences",
          lengths.type().to_string(), x.dim(batch).to_string());
  Builder& b = n.builder();
  const Dims plane = {x.dim(0), x.dim(1)};
  Value t = iota(b, DType::i64, plane, time), row = iota(b, DType::i64, plane, batch);
  Value length = broadcast(cast(lengths, DType::i64), plane, {batch});
  Value source = select(compare("lt", t, length), length - 1 - t, t);
  // One index over both dims.
  Value index =
      time == 0 ? source * size_value(b, x.dim(1)) + row : row * size_value(b, x.dim(1)) + source;
  Dims folded = x.dims();
  folded.erase(folded.begin());
  folded[0] = x.dim(0) * x.dim(1);
  n.out(looked_up(reshape(x, folded), index, 0));
}

}  // namespace hone::onnx_io
