#include <algorithm>

#include "front/hlo/write/emit.h"

// Ops that move elements, and iota.

namespace hone::hlo {
namespace {

Ints counted(const Dims& dims) {
  Ints numbers;
  for (const Dim dim : dims) numbers.push_back(dim.value());
  return numbers;
}

bool are_static(const Dims& dims) {
  return std::ranges::all_of(dims, [](Dim dim) { return dim.is_static(); });
}

// An empty list of strides means this number for each dim.
Ints filled(const Ints& numbers, int rank, int64_t each) {
  return numbers.empty() ? Ints(static_cast<size_t>(rank), each) : numbers;
}

}  // namespace

uint32_t written_iota(Emit& e, Type type, int64_t axis) {
  if (type.is_static())
    return e.op("stablehlo.iota", {}, type, {{"iota_dimension", number_of(axis)}});
  return e.op("stablehlo.dynamic_iota", {e.writer().sizes(type.dims())}, type,
              {{"iota_dimension", number_of(axis)}});
}

Ids write_iota(Emit& e) { return {written_iota(e, e.result_type(), e.op().integer("axis"))}; }

// HLO does not stretch dims of size 1: they go first.
Ids write_broadcast(Emit& e) {
  const Type from = e.type(0), to = e.result_type();
  if (from == to) return {e.in(0)};
  if (!to.is_static())
    return {e.op("stablehlo.dynamic_broadcast_in_dim", {e.in(0), e.writer().sizes(to.dims())}, to,
                 {{"broadcast_dimensions", list_of(e.op().ints("map"))}})};
  uint32_t value = e.in(0);
  const Ints& map = e.op().ints("map");
  Ints kept_map;
  Dims kept;
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t at = map[static_cast<size_t>(i)];
    if (from.dim(i) != to.dim(static_cast<int>(at))) continue;
    kept.push_back(from.dim(i));
    kept_map.push_back(at);
  }
  if (static_cast<int>(kept.size()) != from.rank())
    value = e.op("stablehlo.reshape", {value}, from.with_dims(kept));
  return {e.op("stablehlo.broadcast_in_dim", {value}, to,
               {{"broadcast_dimensions", list_of(kept_map)}})};
}

Ids write_reshape(Emit& e) {
  const Type to = e.result_type();
  if (e.type(0) == to) return {e.in(0)};
  if (to.is_static()) return e.same("stablehlo.reshape");
  return {e.op("stablehlo.dynamic_reshape", {e.in(0), e.writer().sizes(to.dims())}, to)};
}

Ids write_transpose(Emit& e) {
  return e.same("stablehlo.transpose", {{"permutation", list_of(e.op().ints("permutation"))}});
}

Ids write_slice(Emit& e) {
  if (e.type(0).rank() == 0) return {e.in(0)};
  const Dims &start = e.op().dims("start"), &limit = e.op().dims("limit");
  const Ints stride = filled(e.op().ints("stride"), e.type(0).rank(), 1);
  if (!are_static(start) || !are_static(limit))
    return {e.op("stablehlo.real_dynamic_slice",
                 {e.in(0), e.writer().sizes(start), e.writer().sizes(limit),
                  e.writer().sizes(Dims(stride.begin(), stride.end()))},
                 e.result_type())};
  return e.same("stablehlo.slice", {{"start_indices", list_of(counted(start))},
                                    {"limit_indices", list_of(counted(limit))},
                                    {"strides", list_of(stride)}});
}

Ids write_pad(Emit& e) {
  if (e.type(0).rank() == 0) return {e.in(0)};
  const Dims &low = e.op().dims("low"), &high = e.op().dims("high");
  const Ints interior = filled(e.op().ints("interior"), e.type(0).rank(), 0);
  if (!are_static(low) || !are_static(high))
    return {e.op("stablehlo.dynamic_pad",
                 {e.in(0), e.in(1), e.writer().sizes(low), e.writer().sizes(high),
                  e.writer().sizes(Dims(interior.begin(), interior.end()))},
                 e.result_type())};
  return e.same("stablehlo.pad", {{"edge_padding_low", list_of(counted(low))},
                                  {"edge_padding_high", list_of(counted(high))},
                                  {"interior_padding", list_of(interior)}});
}

Ids write_concat(Emit& e) {
  return e.same("stablehlo.concatenate", {{"dimension", number_of(e.op().integer("axis"))}});
}

Ids write_reverse(Emit& e) {
  return e.same("stablehlo.reverse", {{"dimensions", list_of(e.op().ints("axes"))}});
}

}  // namespace hone::hlo
