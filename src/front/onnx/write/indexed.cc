#include <algorithm>

#include "front/onnx/write/registry.h"
#include "ir/functional.h"
#include "tensor/counting.h"

// Elements found by indices that are values. Here starts out of range are clamped and updates out
// of range are dropped; in ONNX both are errors, so indices are brought in range before.

namespace hone::onnx_io {
namespace {

bool contains(const Ints& list, int64_t entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

// As i64. Places that no dim reaches are not negative.
Value as_index(Value v) {
  if (v.dtype() == DType::u64) v = minimum(v, static_cast<double>(kMaxElements));
  return cast(v, DType::i64);
}

Value clamped(Value v, Dim last) { return minimum(maximum(v, 0), size_value(v.builder(), last)); }

bool is_index_type(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

// How gather and scatter see their operand, in common terms.
struct Indexing {
  Ints window_dims;  // of the result or the updates
  Ints left_out;     // operand dims that no window dim stands for, beside the paired ones
  Ints operand_batch, index_batch, index_map;
  int64_t vector_dim = 0;
  Dims sizes;  // of a window

  static Indexing of_gather(Op op) {
    return {op.ints("offset_dims"),
            op.ints("collapsed_dims"),
            op.ints("operand_batch_dims"),
            op.ints("index_batch_dims"),
            op.ints("index_map"),
            op.integer("index_vector_dim"),
            op.dims("sizes")};
  }
  static Indexing of_scatter(Op op, Type x, Type updates) {
    Indexing g = {op.ints("window_dims"),
                  op.ints("inserted_dims"),
                  op.ints("operand_batch_dims"),
                  op.ints("index_batch_dims"),
                  op.ints("index_map"),
                  op.integer("index_vector_dim"),
                  Dims(static_cast<size_t>(x.rank()), 1)};
    size_t next = 0;
    for (int i = 0; i < x.rank(); ++i)
      if (g.has_window(i))
        g.sizes[static_cast<size_t>(i)] = updates.dim(static_cast<int>(g.window_dims[next++]));
    return g;
  }

  bool has_window(int64_t dim) const {
    return !contains(left_out, dim) && !contains(operand_batch, dim);
  }
  // The result's dims that are not a window's, in order.
  Ints outer_dims(int rank) const {
    Ints dims;
    for (int i = 0; i < rank; ++i)
      if (!contains(window_dims, i)) dims.push_back(i);
    return dims;
  }
  bool is_whole(Type x, int64_t dim) const {
    return sizes[static_cast<size_t>(dim)] == x.dim(static_cast<int>(dim));
  }
};

// Gather along one axis: all else is taken whole, and the indices' dims stand where the axis was.
std::optional<int64_t> taken_axis(const Indexing& g, Type x, Type indices) {
  if (g.index_map.size() != 1 || g.left_out != g.index_map || !g.operand_batch.empty())
    return std::nullopt;
  if (g.vector_dim != indices.rank()) return std::nullopt;
  const int64_t axis = g.index_map[0];
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && !g.is_whole(x, i)) return std::nullopt;
  Ints windows = counting(0, axis);
  for (int64_t i = axis; i + 1 < x.rank(); ++i) windows.push_back(i + indices.rank());
  return g.window_dims == windows ? std::optional(axis) : std::nullopt;
}

// GatherElements: all dims but one are paired.
std::optional<int64_t> element_axis(const Indexing& g, Type x, Type indices) {
  if (g.index_map.size() != 1 || g.left_out != g.index_map || !g.window_dims.empty())
    return std::nullopt;
  Ints others = counting(0, x.rank());
  std::erase(others, g.index_map[0]);
  const bool fits = g.vector_dim == indices.rank() && indices.rank() == x.rank() &&
                    g.operand_batch == others && g.index_batch == others;
  return fits ? std::optional(g.index_map[0]) : std::nullopt;
}

// GatherND and ScatterND: the leading dims are paired, the next ones indexed, the rest is whole.
bool is_leading(const Indexing& g, Type x, Type indices, int result_rank) {
  const auto batch = static_cast<int64_t>(g.operand_batch.size());
  const auto components = static_cast<int64_t>(g.index_map.size());
  if (g.operand_batch != counting(0, batch) || g.index_batch != counting(0, batch)) return false;
  if (g.index_map != counting(batch, batch + components) || g.left_out != g.index_map) return false;
  if (g.vector_dim < indices.rank() - 1) return false;
  for (int64_t i = batch + components; i < x.rank(); ++i)
    if (!g.is_whole(x, i)) return false;
  return g.window_dims == counting(g.vector_dim, result_rank);
}

// The indices as ONNX has them: their last dim holds an index's components.
Value tuples(Value indices, const Indexing& g) {
  Value v = as_index(indices);
  return g.vector_dim == indices.rank() ? unsqueeze(v, indices.rank()) : v;
}

// Component k of the indices, with the dims of `indices` but the vector's.
Value component(Value indices, const Indexing& g, size_t k) {
  if (g.vector_dim == indices.rank()) return as_index(indices);
  const int axis = static_cast<int>(g.vector_dim), at = static_cast<int>(k);
  return as_index(squeeze(slice(indices, axis, at, at + 1), axis));
}

// The coordinate in the operand of each element of the result along one operand dim.
Value coordinate(Builder& b, const Indexing& g, Value indices, const Dims& result, int64_t dim,
                 Dim size, bool clamps) {
  const Ints outer = g.outer_dims(static_cast<int>(result.size()));
  auto at = std::find(g.operand_batch.begin(), g.operand_batch.end(), dim);
  if (at != g.operand_batch.end()) {
    int64_t partner = g.index_batch[static_cast<size_t>(at - g.operand_batch.begin())];
    if (partner > g.vector_dim) --partner;
    return iota(b, DType::i64, result, static_cast<int>(outer[static_cast<size_t>(partner)]));
  }
  Value place;
  if (g.has_window(dim)) {
    size_t window = 0;
    for (int64_t i = 0; i < dim; ++i) window += g.has_window(i) ? 1 : 0;
    place = iota(b, DType::i64, result, static_cast<int>(g.window_dims[window]));
  }
  for (size_t k = 0; k < g.index_map.size(); ++k) {
    if (g.index_map[k] != dim) continue;
    Value start = component(indices, g, k);
    if (clamps) start = clamped(start, size - g.sizes[static_cast<size_t>(dim)]);
    start = broadcast(start, result, outer);
    place = place ? place + start : start;
  }
  return place ? place : b.full(DType::i64, result, 0);
}

// The row-major position in the operand of each element of the result, i64 of the result's dims.
Value position(Builder& b, const Indexing& g, Type x, Value indices, const Dims& result,
               bool clamps) {
  Value sum;
  Dim stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    Value c = coordinate(b, g, indices, result, i, x.dim(i), clamps);
    if (!stride.is(1)) c = c * size_value(b, stride);
    sum = sum ? sum + c : c;
    stride *= x.dim(i);
  }
  return sum ? sum : b.full(DType::i64, result, 0);
}

// Operand 1 as the indices of ONNX along one axis of x, in range.
std::string indices_along(Emit& e, Dim size) {
  std::string indices = e.in(1);
  if (!is_index_type(e.type(1).dtype()))
    indices = e.values_of([](Builder&, std::span<const Value> v) -> std::vector<Value> {
      return {as_index(v[1])};
    })[0];
  if (e.is_within(1, size)) return indices;
  const DType dtype = is_index_type(e.type(1).dtype()) ? e.type(1).dtype() : DType::i64;
  indices = e.node("Max", {indices, e.scalar(dtype, 0)});
  std::string last = e.squeeze(e.dim(size - 1), {0});
  if (dtype != DType::i64) last = e.cast(last, dtype);
  return e.node("Min", {indices, last});
}

bool tuples_are_within(Emit& e, const Indexing& g) {
  const std::optional<Dims> known = e.known(1);
  if (!known || g.index_map.empty()) return false;
  for (size_t i = 0; i < known->size(); ++i) {
    const Dim size = e.type(0).dim(static_cast<int>(g.index_map[i % g.index_map.size()]));
    if (!provably_le(0, (*known)[i]) || !provably_lt((*known)[i], size)) return false;
  }
  return true;
}

std::string tuples_as_they_are(Emit& e, const Indexing& g) {
  if (e.type(1).dtype() == DType::i64 && g.vector_dim != e.rank(1)) return e.in(1);
  return e.values_of([&](Builder&, std::span<const Value> v) -> std::vector<Value> {
    return {tuples(v[1], g)};
  })[0];
}

// Tuples with each component in range.
std::string tuples_in_range(Emit& e, const Indexing& g) {
  if (tuples_are_within(e, g)) return tuples_as_they_are(e, g);
  const Type x = e.type(0);
  return e.values_of([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    std::vector<Value> lasts;
    for (int64_t dim : g.index_map)
      lasts.push_back(unsqueeze(size_value(b, x.dim(static_cast<int>(dim)) - 1), 0));
    return {binary(Opcode::min, maximum(tuples(v[1], g), 0), concat(lasts, 0))};
  })[0];
}

bool is_empty(Type type) {
  return std::any_of(type.dims().begin(), type.dims().end(), [](Dim d) { return d.is(0); });
}

}  // namespace

bool export_gather(Emit& e) {
  const Type x = e.type(0), indices = e.type(1);
  const Indexing g = Indexing::of_gather(e.op());
  if (is_empty(e.result_type()) && e.result_type().is_static())
    return e.result_is(e.constant(Tensor::zeros(e.result_type())));
  if (std::optional<int64_t> axis = taken_axis(g, x, indices))
    return e.result("Gather", {e.in(0), indices_along(e, x.dim(static_cast<int>(*axis)))},
                    {{"axis", *axis}});
  if (std::optional<int64_t> axis = element_axis(g, x, indices))
    return e.result("GatherElements", {e.in(0), indices_along(e, x.dim(static_cast<int>(*axis)))},
                    {{"axis", *axis}});
  if (is_leading(g, x, indices, e.result_type().rank()) && !g.index_map.empty())
    return e.result("GatherND", {e.in(0), tuples_in_range(e, g)},
                    {{"batch_dims", static_cast<int64_t>(g.operand_batch.size())}});
  const Dims result(e.result_type().dims().begin(), e.result_type().dims().end());
  std::string place = e.values_of([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    return {position(b, g, x, v[1], result, true)};
  })[0];
  std::string flat = e.reshape(e.in(0), std::vector<Dim>{x.elements()});
  return e.result("Gather", {flat, place}, {{"axis", int64_t{0}}});
}

// ---- Scatter -----------------------------------------------------------------------------------

namespace {

Attributes reduction(Emit& e) {
  const std::string& combine = e.op().word("combine");
  if (combine == "replace") return {};
  const bool is_extreme = combine == "min" || combine == "max";
  const int since = is_extreme ? 18 : 16;
  if (e.opset() < since) e.unsupported("ONNX scatters with {} from opset {} on", combine, since);
  return {{"reduction", std::string_view(combine)}};
}

// Updates out of range go to a further row of the operand, which is cut off again.
bool scatter_by_position(Emit& e, const Indexing& g) {
  const Type x = e.type(0);
  const Dims updates(e.type(2).dims().begin(), e.type(2).dims().end());
  const Dim size = x.elements();
  Names made = e.values_of([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    Value inside;
    for (int i = 0; i < x.rank(); ++i) {
      Value c = coordinate(b, g, v[1], updates, i, x.dim(i), false);
      Value fits =
          binary(Opcode::and_, compare("ge", c, 0), compare("lt", c, size_value(b, x.dim(i))));
      inside = inside ? binary(Opcode::and_, inside, fits) : fits;
    }
    Value place = position(b, g, x, v[1], updates, false);
    if (inside) place = select(inside, place, size_value(b, size));
    const std::vector<Dim> flat = {size}, count = {place.type().elements()};
    return {pad(reshape(v[0], flat), {0}, {1}), reshape(place, count), reshape(v[2], count)};
  });
  Attributes attributes = reduction(e);
  attributes.push_back({"axis", int64_t{0}});
  std::string flat = e.node("ScatterElements", made, attributes);
  std::string cut = e.node("Slice", {flat, e.ints({0}), e.dim(size), e.ints({0})});
  const std::vector<Dim> dims(x.dims().begin(), x.dims().end());
  return e.result_is(e.reshape(cut, dims));
}

// The first dim gets a further row for what is out of range.
bool scatter_rows(Emit& e, const Indexing& g) {
  const Type x = e.type(0);
  Names made = e.values_of([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    std::vector<Value> sizes, outside;
    for (int64_t dim : g.index_map) {
      sizes.push_back(unsqueeze(size_value(b, x.dim(static_cast<int>(dim))), 0));
      outside.push_back(dim == 0 ? sizes.back() : b.full(DType::i64, {1}, 0));
    }
    Value index = tuples(v[1], g);
    Value fits = binary(Opcode::and_, compare("ge", index, 0),
                        compare("lt", index, broadcast_to(concat(sizes, 0), index.dims())));
    if (sizes.size() > 1) fits = reduce("and", fits, {index.rank() - 1}, true);
    index = select(broadcast_to(fits, index.dims()), index,
                   broadcast_to(concat(outside, 0), index.dims()));
    Ints none(static_cast<size_t>(x.rank()), 0), one = none;
    one[0] = 1;
    return {pad(v[0], none, one), index};
  });
  std::string y = e.node("ScatterND", {made[0], made[1], e.in(2)}, reduction(e));
  return e.result("Slice", {y, e.ints({0}), e.dim(x.dim(0)), e.ints({0})});
}

}  // namespace

bool export_scatter(Emit& e) {
  const Type x = e.type(0);
  const Indexing g = Indexing::of_scatter(e.op(), x, e.type(2));
  const bool leads = is_leading(g, x, e.type(1), e.type(2).rank()) && g.operand_batch.empty() &&
                     !g.index_map.empty();
  if (!leads) return scatter_by_position(e, g);
  if (tuples_are_within(e, g)) {
    return e.result("ScatterND", {e.in(0), tuples_as_they_are(e, g), e.in(2)}, reduction(e));
  }
  return scatter_rows(e, g);
}

// ---- Windows at a computed place ---------------------------------------------------------------

namespace {

// Where a window of a size starts, with its starts from operand `first` on; clamped.
Value start_of(std::span<const Value> v, size_t first, int axis, Dim size) {
  return clamped(as_index(v[first + static_cast<size_t>(axis)]), v[0].dim(axis) - size);
}

}  // namespace

// One take along each axis that is not taken whole: shapes stay static, which Slice's would not.
bool export_dynamic_slice(Emit& e) {
  const Dims sizes = e.op().dims("sizes");
  return e.spelled([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    Value x = v[0];
    for (int axis = 0; axis < v[0].rank(); ++axis) {
      const Dim size = sizes[static_cast<size_t>(axis)];
      if (size == v[0].dim(axis)) continue;
      if (size.is(0)) {
        x = slice(x, axis, 0, 0);
        continue;
      }
      Value index = iota(b, DType::i64, {size}, 0) + start_of(v, 1, axis, size);
      x = take(x, index, axis);
    }
    return {x};
  });
}

// Rows of the update, or parts of them, at computed indices.
bool export_dynamic_update(Emit& e) {
  const Type x = e.type(0), update = e.type(1);
  int axes = 0;  // that the indices are for: up to the last one that is not replaced whole
  for (int i = 0; i < x.rank(); ++i)
    if (!(x.dim(i) == update.dim(i))) axes = i + 1;
  if (axes == 0) return e.result_is(e.in(1));
  std::string indices =
      e.values_of([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
        Dims dims(update.dims().begin(), update.dims().begin() + axes);
        std::vector<Value> components;
        for (int axis = 0; axis < axes; ++axis) {
          Value index = iota(b, DType::i64, dims, axis);
          if (!(x.dim(axis) == update.dim(axis)))
            index = index + start_of(v, 2, axis, update.dim(axis));
          components.push_back(unsqueeze(index, axes));
        }
        return {concat(components, axes)};
      })[0];
  return e.result("ScatterND", {e.in(0), indices, e.in(1)});
}

// ---- Sort --------------------------------------------------------------------------------------

namespace {

// A key in a type that runtimes sort, in the same order.
std::string sortable(Emit& e, const std::string& key, DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::i64:
    case DType::i32: return key;
    case DType::u64: return key;
    case DType::u32: return e.cast(key, DType::i64);
    case DType::f16:
    case DType::bf16: return e.cast(key, DType::f32);
    default: return e.cast(key, DType::i32);
  }
}

}  // namespace

// TopK over the whole axis is a stable sort. The last key is sorted by first, so that the first one
// decides in the end; NaN, whose order ONNX leaves open, is a key of its own.
bool export_sort(Emit& e) {
  const int64_t axis = e.op().integer("axis");
  const std::string count = e.dim(e.type(0).dim(static_cast<int>(axis)));
  const bool descending = e.op().flag("descending");
  std::string order;
  auto in_order = [&](const std::string& x) {
    return order.empty() ? x : e.node("GatherElements", {x, order}, {{"axis", axis}});
  };
  auto sort_by = [&](const std::string& key) {
    const Attributes attributes = {{"axis", axis}, {"largest", int64_t{descending}}};
    const std::string places = e.nodes("TopK", {in_order(key), count}, 2, attributes)[1];
    order = order.empty() ? places : e.node("GatherElements", {order, places}, {{"axis", axis}});
  };
  for (int64_t k = e.op().integer("keys"); k-- > 0;) {
    const size_t i = static_cast<size_t>(k);
    const DType dtype = e.type(i).dtype();
    std::string key = sortable(e, e.in(i), dtype);
    if (!is_real(dtype)) {
      sort_by(key);
      continue;
    }
    const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
    std::string is_nan = e.node("IsNaN", {key});
    sort_by(e.node("Where", {is_nan, e.scalar(wide, 0), key}));
    sort_by(e.cast(is_nan, DType::i32));
  }
  for (size_t i = 0; i < e.operands(); ++i)
    e.result_is(e.node("GatherElements", {e.in(i), order}, {{"axis", axis}}), i);
  return true;
}

}  // namespace hone::onnx_io
