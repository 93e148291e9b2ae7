#include "cli/shard_tables.h"

#include <map>

#include "base/checked_math.h"
#include "base/text.h"
#include "base/text_table.h"
#include "shard/mesh_program.h"
#include "timeline/collective_rates.h"

namespace hone::cli {

std::string sharding_values_text(const ShardingPicture& picture) {
  TextTable table("lllr", {"value", "type", "divided", "a device"});
  for (const ShardingPicture::Value& one : picture.values)
    table.add_row({one.name, one.type, one.divided, format_bytes(one.part)});
  return table.to_string();
}

std::string sharding_messages_text(const ShardingPicture& picture) {
  TextTable table("lllr", {"exchange", "value", "needed by", "a device receives"});
  for (const ShardMessage& one : picture.exchanges)
    table.add_row({exchange_text(one), one.value, one.node, format_bytes(one.bytes)});
  return table.empty() ? std::string() : "\n" + table.to_string();
}

std::string sharding_losses_text(const Partition& partition) {
  TextTable table("ll", {"computed whole", "because"});
  for (const WholeNode& one : partition.whole) table.add_row({one.node, one.reason});
  return table.empty() ? std::string() : "\n" + table.to_string();
}

namespace {

// All groups of devices along the axes of the conflict move the value at once.
std::vector<Collective> exchanges_of(const ShardingConflict& conflict, const Mesh& mesh) {
  const Ints members = groups_along(mesh, conflict.axes);
  const int64_t count = count_of(conflict.axes);
  std::vector<Collective> groups;
  for (auto at = members.begin(); count > 1 && at != members.end(); at += count)
    groups.push_back(
        {.kind = conflict.is_gathered ? CollectiveKind::all_gather : CollectiveKind::all_to_all,
         .devices = {at, at + count},
         .elements =
             conflict.is_gathered ? conflict.group_bytes : ceil_div(conflict.group_bytes, count)});
  return groups;
}

Result<std::string> seconds_text(const ShardingConflict& conflict, const Mesh& mesh,
                                 CollectiveRates& rates) {
  const std::vector<Collective> groups = exchanges_of(conflict, mesh);
  if (groups.empty()) return std::string();
  const Result<CollectivePrice> best = rates.best(groups, 1);
  // No schedule has few enough messages for a timeline.
  if (!best.ok() && best.error().code() != ErrorCode::limit) return best.error();
  return best.ok() ? format_seconds(best->seconds) : "-";
}

}  // namespace

Result<std::string> sharding_conflicts_text(const Propagation& propagation, const System& system) {
  CollectiveRates rates(system);
  std::map<std::vector<int64_t>, std::string> known;  // by what moves, and axes
  TextTable table("lllllrr",
                  {"conflict at", "kept", "because", "against", "because", "bytes", "takes"});
  for (const ShardingConflict& one : propagation.conflicts) {
    std::vector<int64_t> key = {one.group_bytes, one.is_gathered ? 1 : 0};
    for (const MeshPart& part : one.axes)
      key.insert(key.end(), {static_cast<int64_t>(part.axis), part.before, part.size});
    const auto [takes, is_new] = known.try_emplace(std::move(key));
    if (is_new) takes->second = HONE_TRY(seconds_text(one, *propagation.mesh, rates));
    table.add_row({one.node, one.kept.value + " " + one.kept.dims, one.kept.because,
                   one.other.value + " " + one.other.dims, one.other.because,
                   format_bytes(one.bytes), takes->second});
  }
  return table.empty() ? std::string() : "\n" + table.to_string();
}

Result<std::string> stated_conflicts_text(const Graph& graph, const MeshRef& mesh,
                                          const ShardRequest& request, const System& system) {
  const Graph stated = HONE_TRY(stated_graph(HONE_TRY(shard_subject(graph)).graph, mesh, request));
  if (stated.shardings() == nullptr) return std::string();
  return sharding_conflicts_text(HONE_TRY(propagate_shardings(stated)), system);
}

}  // namespace hone::cli
