#include "cli/shard_tables.h"

#include <map>

#include "base/text.h"
#include "base/text_table.h"
#include "timeline/collective_price.h"

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
    table.add_row({std::string(name(one.kind)), one.value, one.node, format_bytes(one.bytes)});
  return table.empty() ? std::string() : "\n" + table.to_string();
}

std::string sharding_losses_text(const Partition& partition) {
  TextTable table("ll", {"computed whole", "because"});
  for (const WholeNode& one : partition.whole) table.add_row({one.node, one.reason});
  return table.empty() ? std::string() : "\n" + table.to_string();
}

Result<std::string> sharding_conflicts_text(const Propagation& propagation, const System& system) {
  Collective all;
  all.kind = CollectiveKind::all_gather;
  for (int32_t device = 0; device < static_cast<int32_t>(system.device_count()); ++device)
    all.devices.push_back(device);
  std::map<int64_t, std::string> seconds;  // by bytes
  TextTable table("llllrr", {"conflict at", "kept", "because", "against", "bytes", "takes"});
  for (const ShardingConflict& one : propagation.conflicts) {
    all.elements = one.bytes;
    std::string& takes = seconds[one.bytes];
    if (takes.empty() && all.devices.size() > 1) {
      const Result<CollectivePrice> best = best_schedule({{all}}, 1, system);
      // Nobody simulates exchanges of that many devices.
      if (!best.ok() && best.error().code() != ErrorCode::limit) return best.error();
      takes = best.ok() ? format_seconds(best->seconds) : "-";
    }
    table.add_row({one.node, one.kept.value + " " + one.kept.dims, one.kept.because,
                   one.other.value + " " + one.other.dims, format_bytes(one.bytes), takes});
  }
  return table.empty() ? std::string() : "\n" + table.to_string();
}

}  // namespace hone::cli
