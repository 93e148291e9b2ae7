#include <algorithm>

#include "front/hlo/write/emit.h"
#include "ir/functional.h"

// Ops whose places are computed, and reductions of segments.

namespace hone::hlo {
namespace {

// The starts in one type, as the languages want them. A large unsigned one stays large.
Ids starts_of(Emit& e, size_t first) {
  Ids starts(e.all().begin() + static_cast<std::ptrdiff_t>(first), e.all().end());
  bool alike = true;
  for (size_t i = first; i < e.all().size(); ++i)
    alike = alike && e.type(i).dtype() == e.type(first).dtype();
  if (alike) return starts;
  for (size_t i = first; i < e.all().size(); ++i) {
    const Type type = e.type(i);
    uint32_t& start = starts[i - first];
    if (type.dtype() == DType::u64)
      start = e.op("stablehlo.minimum", {start, e.scalar(DType::u64, int64_t{1} << 62)}, type);
    start = e.converted(start, type, DType::i64);
  }
  return starts;
}

// The windows of a gather: their sizes are an attribute, or an operand if one of them is open.
Ids gathered(Emit& e, uint32_t x, uint32_t indices, const Dims& sizes, Attribute numbers) {
  AttributeList attributes = {{"dimension_numbers", std::move(numbers)}};
  Ids operands = {x, indices};
  const bool open = std::ranges::any_of(sizes, [](Dim size) { return !size.is_static(); });
  if (open) {
    operands.push_back(e.writer().sizes(sizes));
  } else {
    Ints known;
    for (const Dim size : sizes) known.push_back(size.value());
    attributes.emplace_back("slice_sizes", list_of(known));
  }
  attributes.emplace_back("indices_are_sorted", number_of(0));
  return {e.op(open ? "stablehlo.dynamic_gather" : "stablehlo.gather", std::move(operands),
               e.result_type(), std::move(attributes))};
}

// A window whose size is open is the only one of a gather.
Ids sliced_by_gather(Emit& e, const Ids& starts, DType type) {
  const auto count = static_cast<int64_t>(starts.size());
  Ids parts;
  for (const uint32_t start : starts)
    parts.push_back(e.op("stablehlo.reshape", {start}, Type::get(type, {1})));
  const uint32_t indices = count == 1
                               ? parts[0]
                               : e.op("stablehlo.concatenate", std::move(parts),
                                      Type::get(type, {count}), {{"dimension", number_of(0)}});
  Ints all;
  for (int64_t i = 0; i < count; ++i) all.push_back(i);
  return gathered(e, e.in(0), indices, e.op().dims("sizes"),
                  record_of({{"offset_dims", list_of(all)},
                             {"start_index_map", list_of(all)},
                             {"index_vector_dim", number_of(0)}}));
}

}  // namespace

Ids write_dynamic_slice(Emit& e) {
  if (e.all().size() == 1) return {e.in(0)};
  Ids operands = starts_of(e, 1);
  Ints sizes;
  for (const Dim size : e.op().dims("sizes"))
    if (size.is_static()) sizes.push_back(size.value());
  if (sizes.size() != operands.size()) {
    bool alike = true;
    for (size_t i = 1; i < e.all().size(); ++i) alike = alike && e.type(i) == e.type(1);
    return sliced_by_gather(e, operands, alike ? e.type(1).dtype() : DType::i64);
  }
  operands.insert(operands.begin(), e.in(0));
  return {e.op("stablehlo.dynamic_slice", std::move(operands), e.result_type(),
               {{"slice_sizes", list_of(sizes)}})};
}

Ids write_dynamic_update(Emit& e) {
  if (e.all().size() == 2) return {e.in(1)};
  Ids operands = starts_of(e, 2);
  operands.insert(operands.begin(), {e.in(0), e.in(1)});
  return {e.op("stablehlo.dynamic_update_slice", std::move(operands), e.result_type())};
}

Ids write_gather(Emit& e) {
  const Op op = e.op();
  return gathered(e, e.in(0), e.in(1), op.dims("sizes"),
                  record_of({{"offset_dims", list_of(op.ints("offset_dims"))},
                             {"collapsed_slice_dims", list_of(op.ints("collapsed_dims"))},
                             {"operand_batching_dims", list_of(op.ints("operand_batch_dims"))},
                             {"start_indices_batching_dims", list_of(op.ints("index_batch_dims"))},
                             {"start_index_map", list_of(op.ints("index_map"))},
                             {"index_vector_dim", number_of(op.integer("index_vector_dim"))}}));
}

namespace {

bool has(const Ints& numbers, int64_t number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

// The dims of the updates that are no dims of windows.
Ints scatter_dims(const Op& op, int rank) {
  Ints dims;
  for (int i = 0; i < rank; ++i)
    if (!has(op.ints("window_dims"), i)) dims.push_back(i);
  return dims;
}

// The windows are one element long where a start is given: none can be out of range in part, which
// hone and the languages judge differently.
bool has_short_windows(const Op& op, Type x, Type updates) {
  size_t next = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (has(op.ints("inserted_dims"), i) || has(op.ints("operand_batch_dims"), i)) continue;
    const auto at = static_cast<int>(op.ints("window_dims")[next++]);
    if (has(op.ints("index_map"), i) && !updates.dim(at).is(1)) return false;
  }
  return true;
}

// The place of each element of the updates along each dim of the operand, as indices of windows of
// one element.
std::vector<Value> with_single_elements(const Op& op, std::span<const Value> in) {
  const Value x = in[0], updates = in[2];
  Builder& b = x.builder();
  const Dims dims = updates.dims();
  const auto vector_dim = static_cast<int>(op.integer("index_vector_dim"));
  const Ints outer = scatter_dims(op, updates.rank());
  const auto bound = [&](double number) {
    return b.constant(
        Tensor::from_integers(Type::scalar(DType::i64), Ints{static_cast<int64_t>(number)}));
  };
  // Beyond 2^41 every place is out of range, and stays so with the offset within a window.
  Value indices = in[1];
  if (indices.dtype() == DType::u64)
    indices = minimum(indices, b.constant(Tensor::from_integers(Type::scalar(DType::u64),
                                                                Ints{int64_t{1} << 41})));
  indices = cast(indices, DType::i64);
  indices = minimum(maximum(indices, bound(-0x1p41)), bound(0x1p41));
  const auto start = [&](int64_t component) {
    Value one = indices;
    if (vector_dim < indices.rank()) {
      one = slice(one, vector_dim, component, component + 1);
      one = squeeze(one, vector_dim);
    }
    return broadcast(one, dims, outer);
  };
  std::vector<Value> places;
  size_t next = 0;
  Dims column = dims;
  column.emplace_back(1);
  for (int i = 0; i < x.rank(); ++i) {
    Value place = broadcast(bound(0), dims, {});
    const Ints& map = op.ints("index_map");
    if (const auto found = std::ranges::find(map, i); found != map.end())
      place = place + start(found - map.begin());
    const Ints& batch = op.ints("operand_batch_dims");
    if (const auto found = std::ranges::find(batch, i); found != batch.end()) {
      // The dim of the indices, then the dim of the updates that runs along it.
      int64_t at = op.ints("index_batch_dims")[static_cast<size_t>(found - batch.begin())];
      if (at > vector_dim) --at;
      place = place + iota(b, DType::i64, dims, static_cast<int>(outer[static_cast<size_t>(at)]));
    } else if (!has(op.ints("inserted_dims"), i)) {
      place = place + iota(b, DType::i64, dims, static_cast<int>(op.ints("window_dims")[next++]));
    }
    places.push_back(reshape(place, column));
  }
  Ints all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  return {b.op(Opcode::scatter, {x, concat(places, updates.rank()), updates},
               {{"window_dims", Ints()},
                {"inserted_dims", all},
                {"index_map", all},
                {"index_vector_dim", static_cast<int64_t>(updates.rank())},
                {"combine", op.word("combine")}})};
}

}  // namespace

Ids write_scatter(Emit& e) {
  const Op op = e.op();
  if (!has_short_windows(op, e.type(0), e.type(2)))
    return e.spelled(
        [&](Builder&, std::span<const Value> in) { return with_single_elements(op, in); });
  const std::string& combine = op.word("combine");
  GraphToProgram& w = e.writer();
  const Type scalar = Type::scalar(e.dtype());
  std::vector<Region> regions;
  if (combine == "replace")
    regions.push_back(
        w.region(std::vector<Type>{scalar, scalar}, [](const Ids& in) -> Ids { return {in[1]}; }));
  else
    regions.push_back(combining_body(w,
                                     combine == "add"   ? "stablehlo.add"
                                     : combine == "mul" ? "stablehlo.multiply"
                                     : combine == "min" ? "stablehlo.minimum"
                                                        : "stablehlo.maximum",
                                     e.dtype()));
  return {e.op("stablehlo.scatter", e.all(), e.result_type(),
               {{"scatter_dimension_numbers",
                 record_of({{"update_window_dims", list_of(op.ints("window_dims"))},
                            {"inserted_window_dims", list_of(op.ints("inserted_dims"))},
                            {"input_batching_dims", list_of(op.ints("operand_batch_dims"))},
                            {"scatter_indices_batching_dims", list_of(op.ints("index_batch_dims"))},
                            {"scatter_dims_to_operand_dims", list_of(op.ints("index_map"))},
                            {"index_vector_dim", number_of(op.integer("index_vector_dim"))}})},
                {"indices_are_sorted", number_of(0)},
                {"unique_indices", number_of(0)}},
               std::move(regions))};
}

// One row after the other is combined into all segments that it is part of.
Ids write_segment_reduce(Emit& e) {
  const Op op = e.op();
  const Type type = e.result_type();
  return e.spelled([&](Builder& b, std::span<const Value> in) {
    const Dims dims(type.dims().begin(), type.dims().end());
    const Opcode combine = combine_of(op.word("kind"));
    const std::variant<int64_t, double> number = identity_of(combine, type.dtype());
    const Type scalar = Type::scalar(type.dtype());
    const Value first = broadcast(
        b.constant(std::holds_alternative<double>(number)
                       ? Tensor::from_reals(scalar, std::vector<double>{std::get<double>(number)})
                       : Tensor::from_integers(scalar, Ints{std::get<int64_t>(number)})),
        dims, {});
    Value offsets = in[1];
    if (offsets.dtype() == DType::u64)
      offsets = minimum(offsets, b.constant(Tensor::from_integers(Type::scalar(DType::u64),
                                                                  Ints{int64_t{1} << 62})));
    offsets = cast(offsets, DType::i64);
    const Value begins = slice(offsets, 0, 0, dims[0]);
    const Value ends = slice(offsets, 0, 1, dims[0] + 1);
    const Value rows = iota(b, DType::i64, {in[0].dim(0)}, 0);
    const std::vector<Value> state = {first, begins, ends};
    const std::vector<Value> made = scan(
        state, std::vector<Value>{in[0], rows}, [&](Builder& inner, std::span<const Value> at) {
          const Value row = broadcast_to(at[4], at[1].dims());
          const Value is_in =
              binary(Opcode::and_, compare("le", at[1], row), compare("lt", row, at[2]));
          Ints rest;
          for (int i = 1; i < type.rank(); ++i) rest.push_back(i);
          const Value whole = broadcast(at[3], dims, rest);
          const Value joined = inner.op(combine, {at[0], whole});
          const Value chosen =
              inner.op(Opcode::select, {broadcast(is_in, dims, {0}), joined, at[0]});
          return std::vector<Value>{chosen, at[1], at[2]};
        });
    return std::vector<Value>{made[0]};
  });
}

}  // namespace hone::hlo
