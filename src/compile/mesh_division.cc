#include "compile/mesh_division.h"

#include <algorithm>

#include "compile/divided_code.h"
#include "shard/mesh_program.h"

namespace hone {

MeshPort port_of(image::Port whole, const ShardLayout& layout, const Mesh& mesh) {
  MeshPort made = {.whole = std::move(whole)};
  for (const MeshParts& dim : layout.dims) {
    std::vector<MeshPort::Part>& parts = made.dims.emplace_back();
    for (const MeshPart& part : dim)
      if (part.size > 1) parts.push_back({divisor_of(mesh, part), part.size});
  }
  return made;
}

MeshDivision mesh_division(const Graph& graph, const ShardSubject& subject,
                           const Partition& partition) {
  const Mesh& mesh = *partition.mesh;
  MeshDivision made;
  for (const MeshAxis& axis : mesh.axes) made.axes.push_back({axis.name, axis.size});
  std::vector<image::Port> inputs = ports_of(graph, graph.inputs(), "input");
  const std::span<const ValueId> all = subject.graph.inputs();
  for (size_t i = inputs.size(); i < all.size(); ++i)
    inputs.push_back(
        {fmt::format("constant{}", i - graph.inputs().size()), subject.graph.type(all[i])});
  std::vector<image::Port> outputs = ports_of(graph, graph.outputs(), "output");
  for (size_t i = 0; i < inputs.size(); ++i)
    made.inputs.push_back(port_of(std::move(inputs[i]), partition.inputs[i], mesh));
  for (size_t i = 0; i < outputs.size(); ++i)
    made.outputs.push_back(port_of(std::move(outputs[i]), partition.outputs[i], mesh));
  return made;
}

std::vector<std::string> divided_inputs(const Partition& partition) {
  std::vector<std::string> names;
  for (size_t i = 0; i < partition.inputs.size(); ++i)
    if (std::ranges::any_of(partition.inputs[i].dims,
                            [](const MeshParts& parts) { return !parts.empty(); }))
      names.emplace_back(partition.graph.name(partition.graph.inputs()[i]));
  return names;
}

}  // namespace hone
