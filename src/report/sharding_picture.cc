#include "report/sharding_picture.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/op_facts.h"
#include "ir/sharding.h"
#include "shard/node_division.h"
#include "shard/shard_plan.h"

namespace hone {
namespace {

// "[x, -]", or "whole" if nothing divides it: that a dim could take more axes is of no interest any
// more.
std::string dims_that_are(Sharding sharding) {
  const ShardLayout layout = layout_of(sharding);
  if (layout.partial.empty() && std::ranges::all_of(layout.dims, &MeshParts::empty)) return "whole";
  for (DimSharding& dim : sharding.dims) dim.is_open = false;
  return dims_text(sharding);
}

// The largest ones, in their order; among equal ones the first. Returns how many are left out.
template <class T>
size_t keep_largest(std::vector<T>& all, size_t most) {
  if (all.size() <= most) return 0;
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(-all[i].bytes, i); });
  const size_t left_out = all.size() - most;
  order.resize(most);
  std::ranges::sort(order);
  std::vector<T> kept;
  for (const size_t i : order) kept.push_back(std::move(all[i]));
  all = std::move(kept);
  return left_out;
}

}  // namespace

std::string exchange_text(const ShardMessage& one) {
  const std::string kind(name(one.kind));
  return one.times == 1 ? kind : fmt::format("{}, {} times", kind, one.times);
}

ShardingPicture sharding_picture(const Graph& graph, const Partition& partition, bool all,
                                 size_t most) {
  ShardingPicture made = {.mesh = mesh_text(*partition.mesh),
                          .devices = partition.mesh->device_count(),
                          .whole = partition.whole};
  const Shardings none;
  const Shardings& shardings = graph.shardings() == nullptr ? none : *graph.shardings();
  HONE_CHECK(partition.values.size() == graph.value_count(), "the partition is of another graph");
  std::vector<bool> is_output(graph.value_count(), false);
  for (const ValueId v : graph.outputs()) is_output[v.index] = true;
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.results(n)) {
      const Type type = graph.type(v);
      const Partition::MadeValue& own = partition.values[v.index];
      if (!own.part) continue;
      const bool is_number = is_constant(graph.opcode(n)) && type.static_elements() == 1;
      if (!all && !is_output[v.index] && (is_number || !is_leaf(graph.opcode(n)))) continue;
      const std::vector<const Sharding*> said = shardings.of(v);
      const bool is_lost = !said.empty() && partition.made_whole.contains(graph.label(v));
      made.values.push_back({graph.label(v), type.to_string(),
                             is_lost
                                 ? dims_that_are(*said[0]) + ", made whole"
                                 : dims_that_are(sharding_of(partition.mesh, own.layout, own.kind)),
                             type.static_bytes(), own.part.static_bytes()});
    }
  for (const ShardMessage& one : partition.messages) {
    made.received += one.bytes;
    if (is_exchange(one.kind)) made.exchanges.push_back(one);
  }
  made.left_out_values = keep_largest(made.values, most);
  made.left_out_exchanges = keep_largest(made.exchanges, most);
  if (made.whole.size() > most) {
    made.left_out_whole = made.whole.size() - most;
    made.whole.resize(most);
  }
  return made;
}

}  // namespace hone
