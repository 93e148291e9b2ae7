#include <algorithm>

#include "base/checked_math.h"
#include "front/onnx/flow.h"
#include "front/onnx/ops/forms.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"
#include "tensor/dim_compute.h"

// Parts of tensors, and tensors of parts.

namespace hone::onnx_io {

// ---- Concat, Split ------------------------------------------------------------------------------

void map_concat(Node& n) {
  const std::vector<Value> parts = n.all_inputs();
  if (parts.empty()) n.bad("has no inputs");
  const int64_t axis = n.version() < 4 ? n.integer("axis", 1) : n.integer("axis");
  n.out(concat(parts, n.axis_in(axis, parts[0].rank())));
}

namespace {

// Chunks of one size; the last may be smaller since version 18.
Dims equal_parts(Node& n, Dim size, int64_t count) {
  if (count < 1) n.bad("splits into {} parts", count);
  if (std::optional<Dim> part = size.divided_by(count))
    return Dims(static_cast<size_t>(count), *part);
  if (n.version() < 18) {
    // One open size has multiples for which it fits, which import solves.
    if (size.symbols().size() < 2 && !n.depends_on_data(size)) {
      demand(Demand::Kind::multiple, size, count);
      n.bad("the size {} does not split into {} equal parts", size.to_string(), count);
    }
    const Dim part = floordiv(size, count);
    n.must_be(size, part * count, "the size that is split");
    return Dims(static_cast<size_t>(count), part);
  }
  const Dim part = ceildiv(size, count), rest = size - part * (count - 1);
  if (!provably_le(0, rest)) {
    demand(Demand::Kind::multiple, size, count);  // other sizes split, too, but have no formula
    n.bad("the size {} does not split into {} parts of {}", size.to_string(), count,
          part.to_string());
  }
  Dims parts(static_cast<size_t>(count), part);
  parts.back() = rest;
  return parts;
}

Dims split_sizes(Node& n, Dim size) {
  if (n.version() < 13 && n.has_attribute("split")) {
    const Ints parts = n.ints("split");
    return {parts.begin(), parts.end()};
  }
  const bool has_operand = (n.version() < 2 || n.version() >= 13) && n.has(1);
  const bool has_count = n.version() >= 18 && n.has_attribute("num_outputs");
  if (has_operand && has_count) n.bad("has both split and num_outputs");
  if (has_operand) {
    if (n.version() >= 13) return n.sizes(1, std::min(size.range().high, Node::kMostSize));
    Dims parts;  // version 1 has them as real numbers
    for (double part : n.reals(1))
      parts.push_back(static_cast<int64_t>(std::clamp(part, -1., 1e15)));
    return parts;
  }
  const int64_t outputs = static_cast<int64_t>(n.outputs());
  const int64_t count = has_count ? n.integer("num_outputs") : outputs;
  if (count < outputs || count > Contents::kMaxElements)
    n.bad("num_outputs is {}, the node has {} results", count, outputs);
  return equal_parts(n, size, count);
}

}  // namespace

void map_split(Node& n) {
  Value x = n.in();
  const int axis = n.axis("axis", x.rank(), 0);
  const Dims parts = split_sizes(n, x.dim(axis));
  if (parts.size() < n.outputs())
    n.bad("{} results of a split into {} parts", n.outputs(), parts.size());
  Dim sum = 0;
  for (Dim part : parts) sum += part;
  if (sum.is_static() && x.dim(axis).is_static() && !(sum == x.dim(axis)))
    n.bad("the parts sum to {}, the size is {}", sum.to_string(), x.dim(axis).to_string());
  n.must_be(sum, x.dim(axis), "the sum of the parts");
  Dim start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Dim end = start + parts[i];
    if (parts[i].range().low < 0) n.bad("a part has the size {}", parts[i].to_string());
    if (n.wants(i)) {
      const bool fits = parts[i].is_static() && end.is_static() && x.dim(axis).is_static();
      n.out(i, fits || provably_le(end, x.dim(axis))
                   ? slice(x, axis, start, end)
                   : window(x, axis, size_value(n.builder(), start), parts[i]));
    }
    start = end;
  }
}

// ---- Slice --------------------------------------------------------------------------------------

namespace {

// x within low..high if it is provable which of the three it is.
std::optional<Dim> clamped(Dim x, Dim low, Dim high) {
  if (provably_le(x, low)) return low;
  if (provably_le(high, x)) return high;
  if (provably_le(low, x) && provably_le(x, high)) return x;
  return std::nullopt;
}

// An index that counts from the back if it is negative.
std::optional<Dim> counted(Dim index, Dim size) {
  if (provably_le(0, index)) return index;
  if (provably_lt(index, 0)) return index + size;
  return std::nullopt;
}

// One axis of a slice. Axes with a negative step are reversed first, and then counted from there.
struct Cut {
  int axis = 0;
  Number start, end;
  int64_t step = 1;

  bool is_reversed() const { return step < 0; }
  int64_t stride() const { return step < 0 ? -step : step; }
};

// Start and limit of the elements, after the reversal.
std::optional<std::pair<Dim, Dim>> known_extent(const Cut& cut, Dim size) {
  if (!cut.start.known || !cut.end.known) return std::nullopt;
  std::optional<Dim> start = counted(*cut.start.known, size);
  std::optional<Dim> end = counted(*cut.end.known, size);
  if (!start || !end) return std::nullopt;
  if (cut.is_reversed()) start = size - 1 - *start, end = size - 1 - *end;
  start = clamped(*start, 0, cut.is_reversed() ? size - 1 : size);
  end = clamped(*end, 0, size);
  if (!start || !end || !provably_le(0, *start)) return std::nullopt;
  if (provably_le(*end, *start)) return std::pair(*start, *start);
  if (!provably_le(*start, *end)) return std::nullopt;
  return std::pair(*start, *end);
}

// The ranges of open sizes for which the extent is known, where each end goes with one of them.
Bindings ranges_within(const Cut& cut, int64_t size) {
  Bindings ranges;
  for (const std::optional<Dim>& end : {cut.start.known, cut.end.known}) {
    const std::optional<LinearDim> linear = end ? as_linear(*end) : std::nullopt;
    if (!linear || linear->factor <= 0) continue;
    const Symbol symbol = linear->symbol;
    const int64_t most = floor_div(size - linear->offset, linear->factor) * linear->step;
    if (most < symbol.min() || most >= symbol.max()) continue;
    const Symbol less = Symbol::get(symbol.name(), symbol.min(), most, symbol.multiple_of());
    const auto [known, is_new] = ranges.emplace(symbol.name(), less);
    if (!is_new && most < known->second.range().high) known->second = less;
  }
  return ranges;
}

// A table, such as that of positions, whose rows are counted by open sizes: it is as long as they
// may be, if what follows cannot do with less.
std::optional<Flow::Measurable> table_extent(Node& n, const std::vector<Cut>& cuts, Value x) {
  const std::optional<Tensor> table = x.rank() > 1 ? n.maybe_constant(0) : std::nullopt;
  if (!table) return {};
  Flow::Measurable reason;
  for (Cut cut : cuts) {
    const Dim size = x.dim(cut.axis);
    if (known_extent(cut, size)) continue;
    if (!cut.start.known || !cut.end.known) return {};
    const std::string text =
        fmt::format("the slice {}..{} may end behind a table of {}", cut.start.known->to_string(),
                    cut.end.known->to_string(), size.value());
    Bindings ranges = ranges_within(cut, size.value());
    for (Number* end : {&cut.start, &cut.end}) end->known = end->known->bind(ranges);
    if (ranges.empty() || !known_extent(cut, size)) return {};
    reason.why = fmt::format("{} ({})", text, n.describe());
    reason.known_for.merge(ranges);
  }
  if (reason.known_for.empty()) return {};
  return reason;
}

// A bound for the number of elements.
int64_t most_elements(const Cut& cut, Dim size) {
  int64_t most = size.range().high;
  if (cut.start.known && cut.end.known) {
    std::optional<Dim> start = counted(*cut.start.known, size);
    std::optional<Dim> end = counted(*cut.end.known, size);
    if (start && end) {
      const Dim distance = cut.is_reversed() ? *start - *end : *end - *start;
      most = std::clamp<int64_t>(distance.range().high, 0, most);
    }
  }
  return std::min(most, Node::kMostSize);
}

Value bounded(Value x, Value low, Value high) { return maximum(minimum(x, high), low); }

// The same in the graph, as start and number of elements.
std::pair<Value, Value> measured_extent(Builder& b, const Cut& cut, Dim dim) {
  Value size = size_value(b, dim), zero = b.scalar(DType::i64, 0), last = size - 1;
  auto place = [&](const Number& index) {
    Value v = index.in(b);
    v = select(compare("lt", v, 0), v + size, v);
    return cut.is_reversed() ? last - maximum(v, -1) : v;
  };
  Value start = bounded(place(cut.start), zero, cut.is_reversed() ? last : size);
  Value end = bounded(place(cut.end), zero, size);
  Value distance = maximum(end - start, 0) + static_cast<double>(cut.stride() - 1);
  return {start, distance / static_cast<double>(cut.stride())};
}

std::vector<Number> indices_of(Node& n, size_t operand, std::string_view attribute) {
  if (n.version() >= 10) return numbers_of(n, operand);
  std::vector<Number> indices;
  for (int64_t i : n.ints(attribute)) indices.push_back({Dim(i), {}});
  return indices;
}

std::vector<Cut> cuts_of(Node& n, int rank) {
  const std::vector<Number> starts = indices_of(n, 1, "starts"), ends = indices_of(n, 2, "ends");
  Ints axes = counting(0, std::min<int64_t>(static_cast<int64_t>(starts.size()), kMaxRank));
  Ints steps(starts.size(), 1);
  if (n.version() < 10) {
    if (n.has_attribute("axes")) axes = n.ints("axes");
  } else {
    if (n.has(3)) axes = n.integers(3);
    if (n.has(4)) steps = n.integers(4);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    n.bad("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
          steps.size());
  axes = distinct_axes(n, axes, rank);
  std::vector<Cut> cuts;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) n.bad("the step of axis {} is 0", axes[i]);
    // A longer step than any axis takes one element, too.
    const int64_t step = std::clamp(steps[i], -kMaxElements, kMaxElements);
    cuts.push_back({static_cast<int>(axes[i]), starts[i], ends[i], step});
  }
  return cuts;
}

}  // namespace

namespace {

// Axes and steps that depend on data: every axis has a start, an end and a step that are measured.
struct MeasuredCut {
  Value start, count, step;
};

MeasuredCut measured_cut(Builder& b, Dim dim, Value start, Value end, Value step) {
  Value size = size_value(b, dim), zero = b.scalar(DType::i64, 0), minus = b.scalar(DType::i64, -1);
  Value down = compare("lt", step, 0), last = size - 1;
  auto place = [&](Value v) { return select(compare("lt", v, 0), maximum(v + size, -1), v); };
  start = bounded(maximum(place(start), 0), zero, select(down, last, size));
  end = bounded(place(end), select(down, minus, zero), size);
  Value distance = maximum(select(down, start - end, end - start), 0);
  Value stride = minimum(unary(Opcode::abs, maximum(step, -static_cast<double>(kMaxElements))),
                         static_cast<double>(kMaxElements));
  Value count = (distance + stride - 1) / maximum(stride, 1);
  return {start, count, select(down, -stride, stride)};
}

void slice_measured(Node& n, Value x) {
  Builder& b = n.builder();
  const std::vector<Value> starts = elements_of(n, 1), ends = elements_of(n, 2);
  std::vector<Value> axes, steps;
  if (n.has(3)) axes = elements_of(n, 3);
  if (n.has(4)) steps = elements_of(n, 4);
  Value zero = b.scalar(DType::i64, 0), one = b.scalar(DType::i64, 1);
  for (size_t i = 0; i < starts.size() && !n.has(3); ++i)
    axes.push_back(b.scalar(DType::i64, static_cast<double>(i)));
  if (!n.has(4)) steps.assign(starts.size(), one);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    n.bad("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
          steps.size());
  std::vector<MeasuredCut> cuts;
  std::vector<Value> counts;
  Value moving = zero;  // dims that an axis with a step names
  int64_t most = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    Value start = zero, end = size_value(b, x.dim(axis)), step = one;
    Value moves = b.scalar(DType::boolean, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      Value named = binary(Opcode::or_, compare("eq", axes[i], static_cast<double>(axis)),
                           compare("eq", axes[i], static_cast<double>(axis - x.rank())));
      start = select(named, starts[i], start);
      end = select(named, ends[i], end);
      step = select(named, steps[i], step);
      moves = binary(Opcode::or_, moves, binary(Opcode::and_, named, compare("ne", steps[i], 0)));
    }
    moving = moving + cast(moves, DType::i64);
    cuts.push_back(measured_cut(b, x.dim(axis), start, end, step));
    counts.push_back(cuts.back().count);
    most = std::max(most, x.dim(axis).range().high);
  }
  n.must_be(moving, static_cast<int64_t>(axes.size()),
            "the number of dims that axes with a step name");
  const Dims sizes =
      n.sizes({counts.begin(), counts.end()}, std::min(most, room_for_each(1, counts.size())));
  for (size_t i = 0; i < cuts.size(); ++i)
    x = window(x, static_cast<int>(i), cuts[i].start, sizes[i], cuts[i].step);
  n.out(x);
}

}  // namespace

void map_slice(Node& n) {
  Value x = n.in();
  if (n.version() >= 10 && ((n.has(3) && !n.known(3)) || (n.has(4) && !n.known(4))))
    return slice_measured(n, x);
  const std::vector<Cut> cuts = cuts_of(n, x.rank());
  if (cuts.size() == 1 && cuts[0].axis == 0 && cuts[0].step == 1 && cuts[0].start.known &&
      cuts[0].start.known->is(0) && cuts[0].end.known && *cuts[0].end.known == x.dim(0) - 1)
    if (Value whole = without_spare_row(n, x)) return n.out(whole);
  std::vector<Value> starts;
  std::vector<Number> counts;  // a known one for each axis whose extent is known
  int64_t most = 0;
  for (const Cut& cut : cuts) {
    starts.emplace_back();
    if (const auto extent = known_extent(cut, x.dim(cut.axis))) {
      counts.emplace_back(extent->second - extent->first);
      continue;
    }
    auto [start, count] = measured_extent(n.builder(), cut, x.dim(cut.axis));
    starts.back() = start;
    counts.emplace_back(count);
    most = std::max(most, most_elements(cut, x.dim(cut.axis)));
  }
  if (std::optional<Flow::Measurable> reason = table_extent(n, cuts, x))
    n.known_for(*std::move(reason));
  const Dims sizes = n.sizes(counts, most);
  for (size_t i = 0; i < cuts.size(); ++i) {
    const Cut& cut = cuts[i];
    const auto extent = known_extent(cut, x.dim(cut.axis));
    if (cut.is_reversed()) x = reverse(x, {cut.axis});
    if (extent) {
      x = slice(x, cut.axis, extent->first, extent->second, cut.stride());
    } else {
      x = window(x, cut.axis, starts[i], sizes[i],
                 n.builder().scalar(DType::i64, static_cast<double>(cut.stride())));
    }
  }
  n.out(x);
}

}  // namespace hone::onnx_io
