#include "cli/shard_tables.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "ir/op_def.h"
#include "ir/sharding.h"
#include "shard/node_division.h"

namespace hone::cli {
namespace {

// The bytes of the part that a device has.
int64_t part_bytes(Type type, const Sharding& sharding) {
  ShardLayout layout;
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    layout.dims.push_back(covering(mesh_parts(*sharding.mesh, sharding.dims[d].axes),
                                   type.dim(static_cast<int>(d)).value()));
  return local_type(type, layout).static_bytes();
}

// "[x, -]": that a dim could take more axes is of no interest any more.
std::string closed_text(Sharding sharding) {
  for (DimSharding& dim : sharding.dims) dim.is_open = false;
  return dims_text(sharding);
}

}  // namespace

std::string sharding_values_text(const Graph& graph, bool all) {
  TextTable table("lllr", {"value", "type", "divided", "a device"});
  const Shardings none;
  const Shardings& shardings = graph.shardings() == nullptr ? none : *graph.shardings();
  for (NodeId n : graph.nodes()) {
    for (ValueId v : graph.results(n)) {
      const bool is_output = std::ranges::find(graph.outputs(), v) != graph.outputs().end();
      if (!all && !is_output && !is_leaf(graph.opcode(n))) continue;
      const std::vector<const Sharding*> said = shardings.of(v);
      const Type type = graph.type(v);
      table.add_row(
          {graph.label(v), type.to_string(), said.empty() ? "whole" : closed_text(*said[0]),
           format_bytes(said.empty() ? type.static_bytes() : part_bytes(type, *said[0]))});
    }
  }
  return table.to_string();
}

std::string sharding_messages_text(const Partition& partition) {
  TextTable table("lllr", {"exchange", "value", "needed by", "a device receives"});
  for (const ShardMessage& one : partition.messages)
    if (one.kind != ReshardKind::slice)
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
