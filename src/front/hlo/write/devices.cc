#include <algorithm>

#include "front/hlo/write/emit.h"
#include "ir/functional.h"

// Ops of several devices. A device of hone is a partition; there is one replica.

namespace hone::hlo {
namespace {

Attribute channel() { return record_of({{"handle", number_of(1)}, {"type", number_of(1)}}); }

// The attributes of an op among groups; `more` are its own.
AttributeList among_groups(Emit& e, AttributeList more) {
  const Ints& groups = e.op().ints("groups");
  if (groups.empty())
    e.unsupported("groups that name no devices are not handled: the text names them");
  e.writer().need_devices(1 + *std::ranges::max_element(groups));
  more.emplace_back("replica_groups", rows_of(groups, e.op().integer("group_size")));
  more.emplace_back("channel_handle", channel());
  return more;
}

AttributeList with_global_ids(AttributeList attributes) {
  attributes.emplace_back("use_global_device_ids", number_of(1));
  return attributes;
}

bool is_alone(Emit& e) { return e.op().integer("group_size") == 1; }

Ids reduced(Emit& e, std::string_view name, AttributeList attributes) {
  std::vector<Region> regions;
  regions.push_back(combining_body(e.writer(), combiner_of(e.op().word("kind")), e.dtype()));
  return {e.op(name, e.all(), e.result_type(),
               with_global_ids(among_groups(e, std::move(attributes))), std::move(regions))};
}

}  // namespace

Ids write_device_index(Emit& e) {
  const Type type = Type::scalar(DType::u32);
  return {e.converted(e.op("stablehlo.partition_id", {}, type), type, DType::i64)};
}

// The text names devices. In groups the pairs are of members.
Ids write_permute(Emit& e) {
  const Ints& members = e.op().ints("pairs");
  const Ints& groups = e.op().ints("groups");
  const int64_t size = e.op().integer("group_size");
  Ints pairs = size == 0 ? members : Ints();
  if (size > 0 && groups.empty())
    e.unsupported("groups that name no devices are not handled: the text names them");
  for (size_t first = 0; first < groups.size(); first += static_cast<size_t>(size))
    for (int64_t member : members) pairs.push_back(groups[first + static_cast<size_t>(member)]);
  if (!pairs.empty()) e.writer().need_devices(1 + *std::ranges::max_element(pairs));
  return e.same("stablehlo.collective_permute",
                {{"source_target_pairs", rows_of(pairs, 2)}, {"channel_handle", channel()}});
}

// A group of one device has nothing to exchange.
Ids write_all_reduce(Emit& e) {
  if (is_alone(e)) return {e.in(0)};
  return reduced(e, "stablehlo.all_reduce", {});
}

Ids write_reduce_scatter(Emit& e) {
  if (is_alone(e)) return {e.in(0)};
  return reduced(e, "stablehlo.reduce_scatter",
                 {{"scatter_dimension", number_of(e.op().integer("axis"))}});
}

Ids write_all_gather(Emit& e) {
  if (is_alone(e)) return {e.in(0)};
  return e.same(
      "stablehlo.all_gather",
      with_global_ids(among_groups(e, {{"all_gather_dim", number_of(e.op().integer("axis"))}})));
}

// HLO divides and joins along one dim. Another one to join along: the parts become a dim of their
// own, and move.
Ids write_all_to_all(Emit& e) {
  if (is_alone(e)) return {e.in(0)};
  const int64_t split = e.op().integer("split_axis"), concat = e.op().integer("concat_axis");
  const int64_t size = e.op().integer("group_size");
  if (e.is_hlo() && split != concat)
    return e.spelled([&](Builder& b, std::span<const Value> in) -> std::vector<Value> {
      const auto rank = in[0].rank();
      Dims apart = in[0].dims();
      const Dim part = apart[static_cast<size_t>(split)].value() / size;
      apart[static_cast<size_t>(split)] = part;
      apart.insert(apart.begin() + split, size);
      Ints to_front = {split}, to_place;
      for (int64_t i = 0; i <= rank; ++i)
        if (i != split) to_front.push_back(i);
      const Value moved = b.op(Opcode::all_to_all, {transpose(reshape(in[0], apart), to_front)},
                               {{"split_axis", int64_t{0}},
                                {"concat_axis", int64_t{0}},
                                {"group_size", size},
                                {"groups", e.op().ints("groups")}});
      for (int64_t i = 0; i < rank; ++i) {
        if (i == concat) to_place.push_back(0);
        to_place.push_back(i + 1);
      }
      const Type type = e.result_type();
      return {reshape(transpose(moved, to_place), Dims(type.dims().begin(), type.dims().end()))};
    });
  return e.same("stablehlo.all_to_all", among_groups(e, {{"split_dimension", number_of(split)},
                                                         {"concat_dimension", number_of(concat)},
                                                         {"split_count", number_of(size)}}));
}

}  // namespace hone::hlo
