#include "cli/shard_tables.h"

#include "base/text.h"
#include "base/text_table.h"

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

std::string sharding_losses_text(const Propagation& propagation, const Partition& partition) {
  TextTable table("ll", {"computed whole", "because"});
  for (const WholeNode& one : partition.whole) table.add_row({one.node, one.reason});
  std::string text = table.empty() ? std::string() : "\n" + table.to_string();
  TextTable conflicts("llllr", {"conflict at", "kept", "because", "against", "bytes"});
  for (const ShardingConflict& one : propagation.conflicts)
    conflicts.add_row({one.node, one.kept.value + " " + one.kept.dims, one.kept.because,
                       one.other.value + " " + one.other.dims, format_bytes(one.bytes)});
  if (!conflicts.empty()) text += "\n" + conflicts.to_string();
  return text;
}

}  // namespace hone::cli
