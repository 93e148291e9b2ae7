#include <algorithm>

#include "front/onnx/flow.h"
#include "front/onnx/ops/forms.h"
#include "front/onnx/ops/helpers.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"

// Elements found by indices that are values. Where ONNX calls an index out of range an error, the
// result is unspecified: gathers clamp, scatters drop.

namespace hone::onnx_io {
namespace {

void require_integers(Node& n, Value indices) {
  if (!is_integer(indices.dtype()))
    n.bad("the indices have type {}, want integers", indices.type().to_string());
}

// The row-major position in x of the element that `indices` names along an axis and whose other
// coordinates are those of the index.
Value flat_position(Value x, Value indices, int axis) {
  Builder& b = x.builder();
  Value position;
  Dim stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    Value coordinate =
        i == axis ? cast(indices, DType::i64) : iota(b, DType::i64, indices.dims(), i);
    Value part = stride.is(1) ? coordinate : coordinate * size_value(b, stride);
    position = position ? position + part : part;
    stride *= x.dim(i);
  }
  return position;
}

// All dims but one are equal and not empty.
bool is_aligned(Value x, Value indices, int axis) {
  for (int i = 0; i < x.rank(); ++i) {
    if (!provably_le(1, x.dim(i))) return false;
    if (i != axis && !(x.dim(i) == indices.dim(i))) return false;
  }
  return true;
}

Ints without(Ints list, int64_t entry) {
  std::erase(list, entry);
  return list;
}

}  // namespace

// ---- Gather -------------------------------------------------------------------------------------

void map_gather(Node& n) {
  Value x = n.in(), indices = n.in(1);
  require_integers(n, indices);
  n.require_rank(x, "the data", 1);
  const int axis = n.axis("axis", x.rank(), 0);
  check_indices(n, indices, x.dim(axis));
  Value plain = before_clamp(n, indices, {x.dim(axis)});
  n.out(looked_up(x, plain ? plain : from_back(n, indices, x.dim(axis)), axis));
}

void map_gather_elements(Node& n) {
  Value x = n.in(), indices = n.in(1);
  require_integers(n, indices);
  n.require_rank(x, "the data", 1);
  n.require_rank(indices, "the indices", x.rank(), x.rank());
  const int axis = n.axis("axis", x.rank(), 0);
  check_indices(n, indices, x.dim(axis));
  Value plain = is_aligned(x, indices, axis) ? before_clamp(n, indices, {x.dim(axis)}) : Value();
  indices = plain ? plain : from_back(n, indices, x.dim(axis));
  if (!is_aligned(x, indices, axis)) {
    n.out(looked_up(flattened(x), flat_position(x, indices, axis), 0));
    return;
  }
  const Ints others = without(counting(0, x.rank()), axis);
  n.out(n.builder().op(Opcode::gather, {x, indices},
                       {{"offset_dims", Ints{}},
                        {"collapsed_dims", Ints{axis}},
                        {"operand_batch_dims", others},
                        {"index_batch_dims", others},
                        {"index_map", Ints{axis}},
                        {"index_vector_dim", int64_t{x.rank()}},
                        {"sizes", Dims(static_cast<size_t>(x.rank()), 1)}}));
}

namespace {

// Index tuples along the last dim with negative components counted from the back.
Value tuples_from_back(Node& n, Value x, Value indices, int64_t first, int64_t components) {
  if (components == 0) return indices;
  const std::optional<Dims> known = n.flow().contents().of(indices.id());
  auto is_fine = [](Dim index) { return provably_le(0, index); };
  if (known && std::all_of(known->begin(), known->end(), is_fine)) return indices;
  const Dims dims = x.dims();
  const auto begin = dims.begin() + first;
  Value sizes = dims_value(n.builder(), {begin, begin + components});
  indices = cast(indices, DType::i64);
  return select(compare("lt", indices, 0), indices + sizes, indices);
}

void check_tuples(Node& n, Value x, Value indices, int64_t first, int64_t components) {
  for (int64_t i = 0; n.is_checked() && i < components; ++i)
    check_indices(n, slice(indices, -1, i, i + 1), x.dim(static_cast<int>(first + i)));
}

// How many components the index tuples have.
int64_t components_of(Node& n, Value x, Value indices, int64_t batch_dims) {
  require_integers(n, indices);
  n.require_rank(x, "the data", 1);
  n.require_rank(indices, "the indices", 1);
  const Dim last = indices.dim(-1);
  if (!last.is_static()) n.unsupported("the length {} of index tuples varies", last.to_string());
  if (last.value() > x.rank() - batch_dims)
    n.bad("index tuples of length {} into {} dims", last.value(), x.rank() - batch_dims);
  return last.value();
}

// The first dims of the indices as further components, in front.
Value with_batch(Value indices, int64_t batch) {
  if (batch == 0) return indices;
  Dims dims = indices.dims();
  dims.back() = 1;
  std::vector<Value> parts;
  for (int64_t i = 0; i < batch; ++i)
    parts.push_back(iota(indices.builder(), DType::i64, dims, static_cast<int>(i)));
  parts.push_back(cast(indices, DType::i64));
  return concat(parts, -1);
}

}  // namespace

void map_gather_nd(Node& n) {
  Value x = n.in(), indices = n.in(1);
  int64_t batch = n.version() < 12 ? 0 : n.integer("batch_dims", 0);
  if (batch < 0 || batch >= std::min(x.rank(), indices.rank()))
    n.bad("batch_dims is {} for ranks {} and {}", batch, x.rank(), indices.rank());
  int64_t components = components_of(n, x, indices, batch);
  const Dims dims = x.dims();
  check_tuples(n, x, indices, batch, components);
  Value plain = before_clamp(n, indices, {dims.begin() + batch, dims.begin() + batch + components});
  indices = plain ? plain : tuples_from_back(n, x, indices, batch, components);
  Ints none(static_cast<size_t>(x.rank()), 0), missing = none;
  for (int64_t i = 0; i < batch + components; ++i)
    if (!provably_le(1, x.dim(static_cast<int>(i)))) missing[static_cast<size_t>(i)] = 1;
  // A window of size 1 needs dims that are not empty; batch dims become components.
  if (missing != none) {
    x = pad(x, none, missing);
    indices = with_batch(indices, batch);
    components += batch, batch = 0;
  }
  Dims sizes = x.dims();
  std::fill_n(sizes.begin(), batch + components, 1);
  const int64_t outer = indices.rank() - 1, windows = x.rank() - batch - components;
  if (components == 1) indices = without_tuple_dim(indices);
  n.out(n.builder().op(Opcode::gather, {x, indices},
                       {{"offset_dims", counting(outer, outer + windows)},
                        {"collapsed_dims", counting(batch, batch + components)},
                        {"operand_batch_dims", counting(0, batch)},
                        {"index_batch_dims", counting(0, batch)},
                        {"index_map", counting(batch, batch + components)},
                        {"index_vector_dim", outer},
                        {"sizes", sizes}}));
}

// ---- Scatter ------------------------------------------------------------------------------------

namespace {

std::string combine_of(Node& n) {
  const std::string reduction = n.version() < 16 ? "none" : n.word("reduction", "none");
  if (reduction == "none") return "replace";
  const bool extreme = reduction == "max" || reduction == "min";
  if (reduction != "add" && reduction != "mul" && !(extreme && n.version() >= 18))
    n.bad("reduction is '{}'", reduction);
  return reduction;
}

// Bools are combined as numbers: add is or, mul is and.
Value scattered(Value x, Value indices, Value updates, Attrs attrs, const std::string& combine) {
  const bool truth = x.dtype() == DType::boolean && combine != "replace";
  if (truth) x = cast(x, DType::u8), updates = cast(updates, DType::u8);
  std::string how = combine;
  if (truth && combine == "add") how = "max";
  if (truth && combine == "mul") how = "min";
  attrs.push_back({"combine", how});
  Value y = x.builder().op(Opcode::scatter, {x, indices, updates}, std::move(attrs));
  return truth ? cast(y, DType::boolean) : y;
}

}  // namespace

void map_scatter_elements(Node& n) {
  Value x = n.in(), indices = n.in(1), updates = n.in(2);
  require_integers(n, indices);
  n.require_rank(x, "the data", 1);
  n.require_rank(indices, "the indices", x.rank(), x.rank());
  if (indices.dims() != updates.dims())
    n.bad("updates of type {} for indices of type {}", updates.type().to_string(),
          indices.type().to_string());
  const int axis = n.axis("axis", x.rank(), 0);
  const std::string combine = combine_of(n);
  check_indices(n, indices, x.dim(axis));
  indices = from_back(n, indices, x.dim(axis));
  if (is_aligned(x, indices, axis)) {
    const Ints others = without(counting(0, x.rank()), axis);
    n.out(scattered(x, indices, updates,
                    {{"window_dims", Ints{}},
                     {"inserted_dims", Ints{axis}},
                     {"operand_batch_dims", others},
                     {"index_batch_dims", others},
                     {"index_map", Ints{axis}},
                     {"index_vector_dim", int64_t{x.rank()}}},
                    combine));
    return;
  }
  Value y = scattered(flattened(x), flat_position(x, indices, axis), updates,
                      {{"window_dims", Ints{}},
                       {"inserted_dims", Ints{0}},
                       {"index_map", Ints{0}},
                       {"index_vector_dim", int64_t{x.rank()}}},
                      combine);
  n.out(reshape(y, x.dims()));
}

void map_scatter_nd(Node& n) {
  Value x = n.in(), indices = n.in(1), updates = n.in(2);
  const int64_t components = components_of(n, x, indices, 0);
  const int64_t outer = indices.rank() - 1;
  const std::string combine = combine_of(n);
  check_tuples(n, x, indices, 0, components);
  std::vector<Value> window = window_starts(n, x, indices, updates);
  if (combine == "replace" && !window.empty()) {
    window.insert(window.begin(), {x, updates});
    return n.out(n.builder().op(Opcode::dynamic_update, window));
  }
  if (!is_guarded(n, indices)) indices = tuples_from_back(n, x, indices, 0, components);
  n.out(scattered(x, indices, updates,
                  {{"window_dims", counting(outer, outer + x.rank() - components)},
                   {"inserted_dims", counting(0, components)},
                   {"index_map", counting(0, components)},
                   {"index_vector_dim", outer}},
                  combine));
}

// A cache with new entries along an axis, at a place of each batch element.
void map_tensor_scatter(Node& n) {
  Value cache = n.in(), update = n.in(1);
  n.require_rank(cache, "the cache", 2);
  n.require_rank(update, "the update", cache.rank(), cache.rank());
  const int axis = n.axis("axis", cache.rank(), -2);
  if (axis == 0) n.bad("axis 0 is the batch");
  const std::string mode = n.word("mode", "linear");
  if (mode != "linear" && mode != "circular") n.bad("mode is '{}'", mode);
  Builder& b = n.builder();
  const Dims places = {update.dim(0), update.dim(axis)};
  Value index = iota(b, DType::i64, places, 1);
  if (n.has(2)) {
    Value first = n.in(2);
    require_integers(n, first);
    n.require_rank(first, "the write indices", 1, 1);
    index = index + broadcast(cast(first, DType::i64), places, {0});
  }
  if (mode == "linear") check_indices(n, index, cache.dim(axis), false);
  if (mode == "circular") index = floor_mod(index, size_value(b, cache.dim(axis)));
  n.out(b.op(Opcode::scatter, {cache, index, update},
             {{"window_dims", without(counting(1, cache.rank()), axis)},
              {"inserted_dims", Ints{axis}},
              {"operand_batch_dims", Ints{0}},
              {"index_batch_dims", Ints{0}},
              {"index_map", Ints{axis}},
              {"index_vector_dim", int64_t{2}}}));
}

// ---- OneHot, TopK -------------------------------------------------------------------------------

void map_one_hot(Node& n) {
  Value depth = cast(scalar_of(n, 1), DType::i64);
  const Dim size = n.size(depth);
  if (size.range().low < 0) n.bad("the depth is {}", size.to_string());
  Value indices = n.in(), values = with_size(n, n.in(2), 0, 2, "the number of values");
  if (!is_integer(indices.dtype())) indices = cast(indices, DType::i64);
  n.out(n.builder().op(
      Opcode::one_hot, {indices, values},
      {{"depth", Dims{size}}, {"axis", int64_t{n.axis("axis", indices.rank() + 1, -1)}}}));
}

namespace {

Dim top_count(Node& n) {
  if (n.version() < 10) return n.integer("k");
  return n.size(scalar_of(n, 1));
}

}  // namespace

void map_top_k(Node& n) {
  const Dim k = top_count(n);
  Value x = n.in();
  const int axis = n.axis("axis", x.rank(), -1);
  const bool largest = n.version() < 11 || n.flag("largest", true);
  if (n.version() >= 11) n.ignore("sorted");  // sorted is one of the orders that 0 allows
  const Dim dim = x.dim(axis);
  if (k.range().low < 0) n.bad("k is {}", k.to_string());
  if (provably_lt(dim, k))
    n.bad("k is {}, axis {} has {} elements", k.to_string(), axis, dim.to_string());
  if (provably_le(k, dim)) {
    n.out_all(n.builder().ops(Opcode::top_k, std::vector{x},
                              {{"k", Dims{k}},
                               {"axis", int64_t{axis == x.rank() - 1 ? -1 : axis}},
                               {"largest", largest}}));
    return;
  }
  // The file promises that an open size is so large.
  Builder& b = n.builder();
  if (n.depends_on_data(k) || n.depends_on_data(dim))
    n.must_be(maximum(size_value(b, k), size_value(b, dim)), dim,
              "k, or the size if that is more,");
  const std::vector<Value> pair = {x, iota(n.builder(), DType::i64, x.dims(), axis)};
  Value zero = n.builder().scalar(DType::i64, 0);
  const std::vector<Value> sorted = sort(pair, axis, largest);
  for (size_t i = 0; i < 2; ++i) n.out(i, window(sorted[i], axis, zero, k));
}

}  // namespace hone::onnx_io
