#include <algorithm>

#include "base/text.h"
#include "front/hlo/bodies.h"
#include "front/hlo/importer.h"

// Ops whose places are computed: gather, scatter, and the gradient of a pool.

namespace hone::hlo {
namespace {

Value number(Builder& b, DType type, int64_t value) {
  return b.constant(Tensor::from_integers(Type::scalar(type), std::vector<int64_t>{value}));
}

Value compared(std::string_view direction, Value a, Value b) {
  return a.builder().op(Opcode::compare, {a, b}, {{"direction", std::string(direction)}});
}

struct Places {
  Ints window_dims = {};
  Ints inserted = {};
  Ints operand_batch = {};
  Ints index_batch = {};
  Ints map = {};
  int64_t vector_dim = 0;
};

// Along each dim of the operand, the window's size.
Dims window_sizes(Node& n, const Places& places, Value x, Value updates) {
  Dims sizes;
  size_t next = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const bool one = std::ranges::find(places.inserted, i) != places.inserted.end() ||
                     std::ranges::find(places.operand_batch, i) != places.operand_batch.end();
    if (one) {
      sizes.emplace_back(1);
      continue;
    }
    if (next >= places.window_dims.size() || places.window_dims[next] < 0 ||
        places.window_dims[next] >= updates.rank())
      n.refuse(bad_input("the dims of the windows do not fit the operand"));
    sizes.push_back(updates.dim(static_cast<int>(places.window_dims[next++])));
  }
  return sizes;
}

// hone drops each element of an update that is out of range, XLA the whole window if a part of it
// is. So windows that do not fit get a start behind the end.
Value fitting(Node& n, const Places& places, const Dims& sizes, Value x, Value indices) {
  bool all_fit_or_none = true;
  for (const int64_t axis : places.map) {
    if (axis < 0 || axis >= x.rank())
      n.refuse(bad_input("dim {} is outside of rank {}", axis, x.rank()));
    all_fit_or_none = all_fit_or_none && sizes[static_cast<size_t>(axis)].is(1);
  }
  if (all_fit_or_none) return indices;
  Builder& b = n.builder();
  indices = cast(indices, DType::i64);
  const bool vectors = places.vector_dim < indices.rank();
  const auto most = [&](int64_t axis) {
    const Dim rest = x.dim(static_cast<int>(axis)) - sizes[static_cast<size_t>(axis)];
    if (!rest.is_static()) n.refuse(unsupported("of windows along an open size is not handled"));
    return rest.value();
  };
  Ints limits;
  for (const int64_t axis : places.map) limits.push_back(most(axis));
  Value limit = b.constant(
      Tensor::from_integers(Type::get(DType::i64, {static_cast<int64_t>(limits.size())}), limits));
  limit = vectors ? broadcast(limit, indices.dims(), {places.vector_dim})
                  : spread(reshape(limit, {}), indices.dims());
  const Value zero = spread(number(b, DType::i64, 0), indices.dims());
  Value fits = binary(Opcode::and_, compared("ge", indices, zero), compared("le", indices, limit));
  if (vectors) {
    Ints map;
    for (int i = 0; i < indices.rank(); ++i)
      if (i != places.vector_dim) map.push_back(i);
    fits = broadcast(reduce("and", fits, {places.vector_dim}), indices.dims(), map);
  }
  // 2^40 is behind the end of every dim.
  return select(fits, indices, spread(number(b, DType::i64, int64_t{1} << 40), indices.dims()));
}

std::vector<Value> scattered(Node& n, const Places& places, std::string_view combine, Value x,
                             Value indices, Value updates) {
  // Bools have neither sums nor products: the larger and the smaller one are or and and.
  const bool truth = is_bool(x.dtype());
  std::string word = combine == "sum" ? "add" : combine == "product" ? "mul" : std::string(combine);
  if (word == "or" || word == "and") {
    if (!truth) n.refuse(unsupported("bitwise {} of {} is not handled", word, name(x.dtype())));
    word = word == "or" ? "max" : "min";
  }
  const bool as_numbers = truth && word != "replace";
  const auto in = [&](Value v) { return as_numbers ? cast(v, DType::u8) : v; };
  const Value made = n.builder().op(Opcode::scatter, {in(x), indices, in(updates)},
                                    {{"window_dims", places.window_dims},
                                     {"inserted_dims", places.inserted},
                                     {"operand_batch_dims", places.operand_batch},
                                     {"index_batch_dims", places.index_batch},
                                     {"index_map", places.map},
                                     {"index_vector_dim", places.vector_dim},
                                     {"combine", word}});
  return {as_numbers ? cast(made, DType::boolean) : made};
}

}  // namespace

namespace {

// Any body: one update after the other, row-major. `places` are those of the elements in the
// operands, in row-major order; those below 0 are dropped.
std::vector<Value> scattered_stepwise(Node& n, const Body& body, std::span<const Value> operands,
                                      Value places, std::span<const Value> updates) {
  const int64_t steps = places.type().static_elements();
  const int64_t size = operands[0].type().static_elements();
  if (steps == 0 || size == 0) return {operands.begin(), operands.end()};
  std::vector<Value> initial, scanned = {reshape(places, {steps})};
  for (const Value& one : operands) initial.push_back(reshape(one, {size}));
  for (const Value& one : updates) scanned.push_back(reshape(one, {steps}));
  const size_t count = operands.size();
  std::vector<Value> made = scan(initial, scanned, [&](Builder& b, std::span<const Value> in) {
    const Value place = in[count];
    const Value is_there = compare("ge", place, 0.0);
    std::vector<Value> arguments;
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(
          reshape(b.op(Opcode::dynamic_slice, {in[i], place}, {{"sizes", Dims{1}}}), {}));
    const std::vector<Value> old = arguments;
    arguments.insert(arguments.end(), in.begin() + static_cast<std::ptrdiff_t>(count) + 1,
                     in.end());
    const std::vector<Value> combined = n.apply_in(b, body, arguments, {});
    if (combined.size() != count)
      n.refuse(bad_input("the body gives {} values for {} operands", combined.size(), count));
    std::vector<Value> next;
    for (size_t i = 0; i < count; ++i) {
      if (combined[i].type() != old[i].type())
        n.refuse(bad_input("the body gives {}, but the operand is of {}",
                           combined[i].type().to_string(), name(old[i].dtype())));
      const Value chosen = b.op(Opcode::select, {is_there, combined[i], old[i]});
      next.push_back(b.op(Opcode::dynamic_update, {in[i], reshape(chosen, {1}), place}));
    }
    return next;
  });
  for (size_t i = 0; i < count; ++i) made[i] = reshape(made[i], operands[i].dims());
  return made;
}

// The place of each element of the updates in the operand, row-major; -1: it is dropped.
Value flat_places(Node& n, const Places& places, Value x, Value indices, Value updates) {
  Builder& b = n.builder();
  const Dims dims = updates.dims();
  Ints outer;  // dims of the updates that run over the indices
  for (int i = 0; i < updates.rank(); ++i)
    if (std::ranges::find(places.window_dims, i) == places.window_dims.end()) outer.push_back(i);
  const bool vectors = places.vector_dim < indices.rank();
  if (static_cast<int>(outer.size()) != indices.rank() - (vectors ? 1 : 0))
    n.refuse(bad_input("the updates do not fit the indices"));
  // Beyond 2^41 all is out of range, and stays so with the offset within a window.
  if (indices.dtype() == DType::u64)
    indices = minimum(indices, b.constant(Tensor::from_integers(Type::scalar(DType::u64),
                                                                Ints{int64_t{1} << 41})));
  const Value limit = number(b, DType::i64, int64_t{1} << 41);
  indices = minimum(maximum(cast(indices, DType::i64), -limit), limit);
  Value flat = spread(number(b, DType::i64, 0), dims);
  Value fits =
      spread(b.constant(Tensor::from_integers(Type::scalar(DType::boolean), Ints{1})), dims);
  const Ints sizes = x.type().static_dims();
  const Ints strides = row_major_strides(sizes);
  size_t next = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    Value place = spread(number(b, DType::i64, 0), dims);
    if (const auto found = std::ranges::find(places.map, axis); found != places.map.end()) {
      Value start = indices;
      const int64_t k = found - places.map.begin();
      if (vectors) {
        const auto vector_dim = static_cast<int>(places.vector_dim);
        start = squeeze(slice(start, vector_dim, k, k + 1), vector_dim);
      }
      place = place + broadcast(start, dims, outer);
    }
    const auto batch = std::ranges::find(places.operand_batch, axis);
    if (batch != places.operand_batch.end()) {
      int64_t at = places.index_batch.at(static_cast<size_t>(batch - places.operand_batch.begin()));
      if (vectors && at > places.vector_dim) --at;
      if (at < 0 || at >= static_cast<int64_t>(outer.size()))
        n.refuse(bad_input("a batch dim of the indices is out of range"));
      place = place + iota(b, DType::i64, dims, static_cast<int>(outer[static_cast<size_t>(at)]));
    } else if (std::ranges::find(places.inserted, axis) == places.inserted.end()) {
      place = place + iota(b, DType::i64, dims, static_cast<int>(places.window_dims[next++]));
    }
    const Value above = compared("ge", place, spread(number(b, DType::i64, 0), dims));
    const Value below = compared(
        "lt", place, spread(number(b, DType::i64, sizes[static_cast<size_t>(axis)]), dims));
    fits = binary(Opcode::and_, fits, binary(Opcode::and_, above, below));
    flat = flat + place * number(b, DType::i64, strides[static_cast<size_t>(axis)]);
  }
  return select(fits, flat, spread(number(b, DType::i64, -1), dims));
}

}  // namespace

std::vector<Value> map_gather(Node& n) {
  constexpr std::string_view kRecord = "dimension_numbers";
  const bool is_dynamic = n.instruction().name == "stablehlo.dynamic_gather";
  Dims sizes;
  if (is_dynamic)
    sizes = n.known_dims(2);
  else
    for (const int64_t size : n.ints("slice_sizes")) sizes.emplace_back(size);
  return {
      n.builder().op(Opcode::gather, {n.in(0), n.in(1)},
                     {{"offset_dims", n.field(kRecord, "offset_dims", Ints())},
                      {"collapsed_dims", n.field(kRecord, "collapsed_slice_dims", Ints())},
                      {"operand_batch_dims", n.field(kRecord, "operand_batching_dims", Ints())},
                      {"index_batch_dims", n.field(kRecord, "start_indices_batching_dims", Ints())},
                      {"index_map", n.field(kRecord, "start_index_map", Ints())},
                      {"index_vector_dim", n.field(kRecord, "index_vector_dim", 0)},
                      {"sizes", sizes}})};
}

std::vector<Value> map_scatter(Node& n) {
  constexpr std::string_view kRecord = "scatter_dimension_numbers";
  const size_t count = n.operands().size() / 2;
  if (n.operands().size() != 2 * count + 1 || count == 0)
    n.refuse(bad_input("it has {} operands; each operand needs updates", n.operands().size()));
  const Places places = {.window_dims = n.field(kRecord, "update_window_dims", Ints()),
                         .inserted = n.field(kRecord, "inserted_window_dims", Ints()),
                         .operand_batch = n.field(kRecord, "input_batching_dims", Ints()),
                         .index_batch = n.field(kRecord, "scatter_indices_batching_dims", Ints()),
                         .map = n.field(kRecord, "scatter_dims_to_operand_dims", Ints()),
                         .vector_dim = n.field(kRecord, "index_vector_dim", 0)};
  const Value x = n.in(0);
  const Value updates = n.in(count + 1);
  const Dims sizes = window_sizes(n, places, x, updates);
  const Body body = n.body(0, "to_apply");
  const Value indices = fitting(n, places, sizes, x, n.in(count));
  const std::optional<std::string_view> combine = combiner(body);
  const bool is_bitwise = combine && (*combine == "or" || *combine == "and");
  if (count == 1 && combine && (!is_bitwise || is_bool(x.dtype())))
    return scattered(n, places, *combine, x, indices, updates);
  if (!x.type().is_static() || !updates.type().is_static())
    n.refuse(unsupported("by such a body of sizes that are open is not handled"));
  const std::vector<Value> operands(n.operands().begin(),
                                    n.operands().begin() + static_cast<std::ptrdiff_t>(count));
  const std::vector<Value> all_updates(
      n.operands().begin() + static_cast<std::ptrdiff_t>(count) + 1, n.operands().end());
  for (size_t i = 1; i < count; ++i)
    if (operands[i].dims() != x.dims() || all_updates[i].dims() != updates.dims())
      n.refuse(bad_input("the operands 0 and {} differ in shape", i));
  if (places.operand_batch.size() != places.index_batch.size())
    n.refuse(bad_input("there are {} batch dims of the operand, but {} of the indices",
                       places.operand_batch.size(), places.index_batch.size()));
  return scattered_stepwise(n, body, operands, flat_places(n, places, x, indices, updates),
                            all_updates);
}

// Each window picks one of its elements by the first body, and the source's value is combined into
// its place by the second one. Padding is never picked.
std::vector<Value> map_select_and_scatter(Node& n) {
  n.need(3);
  const Value x = n.in(0);
  const Value source = n.in(1);
  Builder& b = n.builder();
  const Windows w = windows_of(n, x.rank());
  const Body select_body = n.body(0, "select");
  const Body scatter_body = n.body(1, "scatter");
  const std::optional<std::string_view> combine = combiner(scatter_body);
  const int64_t elements = x.type().static_elements();
  const Value places = reshape(iota(b, DType::i64, {elements}, 0), x.dims());
  const Value base = padded_base(x, b.scalar(x.dtype(), 0), w);
  const Value base_places = padded_base(places, number(b, DType::i64, -1), w);
  const Ints fits = positions(n, w, base.type().static_dims());
  const Dims dims(fits.begin(), fits.end());
  if (dims != source.dims())
    n.refuse(bad_input("the source is {}, but there are {} windows", source.type().to_string(),
                       join(fits, "x")));
  Value best, best_place;
  for_each_place(n, w, [&](const Ints& place) {
    const Value next = at_place(base, w, fits, place);
    const Value next_place = at_place(base_places, w, fits, place);
    if (!best) {
      best = next;
      best_place = next_place;
      return;
    }
    const Value none = compare("lt", best_place, 0.0);
    const Value there = compare("ge", next_place, 0.0);
    const std::vector<Value> stays = n.apply(select_body, std::vector<Value>{best, next}, &dims);
    if (stays.size() != 1 || !is_bool(stays[0].dtype()))
      n.refuse(bad_input("the first body must give one bool"));
    const Value moves =
        binary(Opcode::and_, there, binary(Opcode::or_, none, unary(Opcode::not_, stays[0])));
    best = select(moves, next, best);
    best_place = select(moves, next_place, best_place);
  });
  if (!combine) {
    const Value begun[] = {spread(n.in(2), x.dims())};
    return scattered_stepwise(n, scatter_body, begun, best_place, std::vector<Value>{source});
  }
  const int64_t windows = source.type().static_elements();
  const Places flat = {.inserted = {0}, .map = {0}, .vector_dim = 1};
  const std::vector<Value> made =
      scattered(n, flat, *combine, spread(n.in(2), {elements}), reshape(best_place, {windows}),
                reshape(source, {windows}));
  return {reshape(made[0], x.dims())};
}

}  // namespace hone::hlo
