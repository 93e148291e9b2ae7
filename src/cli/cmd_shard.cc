#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "ir/op_def.h"
#include "ir/sharding.h"
#include "shard/partition.h"
#include "shard/propagate.h"

namespace hone::cli {
namespace {

// "x=2,y=4"
Result<MeshRef> parse_mesh(const std::string& text) {
  Mesh mesh = {"mesh", {}};
  for (std::string_view axis : split(text, ',')) {
    const size_t equals = axis.find('=');
    const Result<int64_t> size = parse_int(
        equals == std::string_view::npos ? std::string_view() : trim(axis.substr(equals + 1)));
    if (!size.ok())
      return usage_error("the axis '{}' has no size", excerpt(axis))
          .about("--mesh")
          .with_hint("write x=2,y=4");
    mesh.axes.push_back({std::string(trim(axis.substr(0, equals))), *size});
  }
  if (Status good = check(mesh); !good.ok())
    return std::move(good).error().as(ErrorCode::usage).about("--mesh");
  return std::make_shared<const Mesh>(std::move(mesh));
}

Result<ValueId> value_named(const Graph& graph, std::string_view name) {
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.results(n))
      if (graph.name(v) == name) return v;
  return usage_error("the graph has no value '{}'", excerpt(name)).about("--shard");
}

// The mesh of --mesh, or the only one of the graph.
Result<MeshRef> mesh_of(const Graph& graph, const Arguments& arguments) {
  const std::vector<MeshRef> own = meshes_of(graph);
  if (!arguments.given("mesh")) {
    if (own.size() == 1) return own[0];
    return usage_error("the graph has {}", own.empty() ? "no mesh" : "several meshes")
        .with_hint("--mesh x=2,y=4 says how many devices there are along which axes");
  }
  if (!own.empty())
    return usage_error("the graph has a mesh of its own, {}", axes_text(*own[0])).about("--mesh");
  return parse_mesh(arguments.text("mesh"));
}

// The graph, with what --shard says beside what it says itself.
Result<Graph> stated(Graph graph, const MeshRef& mesh, const Arguments& arguments) {
  Shardings all = graph.shardings() == nullptr ? Shardings() : *graph.shardings();
  for (const std::string& one : arguments.list("shard")) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos)
      return usage_error("'{}' divides no value", excerpt(one))
          .about("--shard")
          .with_hint("write NAME=[x, -]");
    const ValueId value = HONE_TRY(value_named(graph, one.substr(0, equals)));
    Result<Sharding> sharding =
        parse_sharding(std::string_view(one).substr(equals + 1), mesh, graph.type(value));
    if (!sharding.ok())
      return std::move(sharding).error().as(ErrorCode::usage).about("--shard").within(one);
    all.add(value, std::move(*sharding));
  }
  if (all.empty())
    return usage_error("no value is divided").with_hint("--shard 'NAME=[x, -]' divides one");
  graph.set_shardings(std::make_shared<const Shardings>(std::move(all)));
  return graph;
}

int64_t devices_along(const Sharding& sharding) {
  int64_t count = 1;
  for (const DimSharding& dim : sharding.dims)
    for (const AxisPart& part : dim.axes)
      count *= part.size != 0 ? part.size : sharding.mesh->find(part.axis)->size;
  return count;
}

// "[x, -]": that a dim could take more axes is of no interest any more.
std::string closed_text(Sharding sharding) {
  for (DimSharding& dim : sharding.dims) dim.is_open = false;
  return dims_text(sharding);
}

// Who holds what: inputs, constants and outputs, or all values.
std::string values_text(const Graph& graph, bool all) {
  TextTable table("lllr", {"value", "type", "divided", "a device"});
  const Shardings none;
  const Shardings& shardings = graph.shardings() == nullptr ? none : *graph.shardings();
  for (NodeId n : graph.nodes()) {
    for (ValueId v : graph.results(n)) {
      const bool is_output = std::ranges::find(graph.outputs(), v) != graph.outputs().end();
      if (!all && !is_output && !is_leaf(graph.opcode(n))) continue;
      const std::vector<const Sharding*> said = shardings.of(v);
      const Type type = graph.type(v);
      const int64_t bytes = type.static_bytes();
      table.add_row(
          {graph.label(v), type.to_string(), said.empty() ? "whole" : closed_text(*said[0]),
           format_bytes(said.empty() ? bytes : ceil_div(bytes, devices_along(*said[0])))});
    }
  }
  return table.to_string();
}

std::string messages_text(const Partition& partition) {
  TextTable table("lllr", {"exchange", "value", "needed by", "a device receives"});
  for (const ShardMessage& one : partition.messages)
    if (one.kind != ReshardKind::slice)
      table.add_row({std::string(name(one.kind)), one.value, one.node, format_bytes(one.bytes)});
  return table.empty() ? std::string() : "\n" + table.to_string();
}

// The nodes that no axis divides although one could, and the divisions that do not fit together.
std::string losses_text(const Propagation& propagation, const Partition& partition) {
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

}  // namespace

Status cmd_shard(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output");
  if (!path.empty()) HONE_TRY(check_model_path(path));
  Graph graph = HONE_TRY(given_graph(arguments.text("MODEL"), arguments, console));
  const MeshRef mesh = HONE_TRY(mesh_of(graph, arguments));
  graph = HONE_TRY(stated(std::move(graph), mesh, arguments));
  const Propagation propagation = HONE_TRY(propagate_shardings(graph));
  const Partition partition = HONE_TRY(partition_graph(graph));
  if (path != "-") {
    console.write(values_text(propagation.graph, arguments.given("all")));
    console.write(messages_text(partition));
    console.write(losses_text(propagation, partition));
  }
  int64_t received = 0, exchanges = 0;
  for (const ShardMessage& one : partition.messages) {
    received += one.bytes;
    exchanges += one.kind != ReshardKind::slice;
  }
  console.note("{} devices, {}: {} exchange{}, {} that each device receives", mesh->device_count(),
               axes_text(*mesh), exchanges, exchanges == 1 ? "" : "s", format_bytes(received));
  if (path.empty()) return {};
  return write_model(model_of(partition.graph), path, console);
}

}  // namespace hone::cli
