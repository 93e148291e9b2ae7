#include <algorithm>

#include "front/hlo/device_dims.h"

// Programs of all devices that say of values on which device they are: device_dims.h.

namespace hone::hlo {
namespace {

bool reads_device_number(const Graph& graph) {
  for (const NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::device_index) return true;
    for (const GraphRef& region : graph.regions(n))
      if (reads_device_number(*region)) return true;
  }
  return false;
}

}  // namespace

Graph with_single_devices(Graph graph, const Teller& teller) {
  const std::vector<MeshRef> meshes = meshes_of(graph);
  const auto is_single = [](const MeshRef& one) { return one->single_device().has_value(); };
  const auto has_several = [](const MeshRef& one) { return one->device_count() > 1; };
  const auto all = std::ranges::find_if(meshes, has_several);
  if (all == meshes.end() || std::ranges::none_of(meshes, is_single) || !graph.is_static() ||
      !reads_device_number(graph))
    return graph;
  if ((*all)->axes.size() > kMostManualAxes)
    teller.refuse(unsupported("a mesh of more than {} axes is not handled", kMostManualAxes));
  Builder builder(graph.name());
  Importer::leave_on_failure(builder);
  std::vector<Differing> inputs;
  for (const ValueId v : graph.inputs())
    inputs.push_back({builder.parameter(graph.name(v), graph.type(v))});
  DeviceDims device_dims(teller, *all, 0);
  Shardings said;
  const std::vector<Differing> made = device_dims.run(builder, graph, inputs, said);
  std::vector<Value> outputs;
  for (size_t i = 0; i < made.size(); ++i) {
    const Value& own = outputs.emplace_back(device_dims.whole_of(made[i], {.mesh = *all}));
    const std::string_view name = graph.name(graph.outputs()[i]);
    if (!name.empty() && builder.graph().name(own.id()).empty()) own.named(name);
  }
  for (const Donation& one : graph.donations())
    builder.donate(inputs[one.input].value, static_cast<int>(one.output));
  said.outputs = graph.shardings()->outputs;
  builder.set_shardings(std::make_shared<const Shardings>(std::move(said)));
  Result<Graph> finished = builder.finish(outputs);
  if (!finished.ok()) teller.refuse(std::move(finished).error());
  return std::move(*finished);
}

}  // namespace hone::hlo
