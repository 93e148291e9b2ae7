#include "session/mesh_code.h"

#include "compile/mesh_division.h"

namespace hone {

Result<ShardedModel> sharded_on(const Graph& graph, const ShardRequest& request,
                                const DeviceOptions& devices, const ShardCosts& prices,
                                const Face& face) {
  const MeshRef mesh = HONE_TRY(mesh_of_request(request, graph));
  ShardedModel made =
      HONE_TRY(sharded_model(graph, mesh, request, *devices.system, prices.costs, prices.options));
  if (made.chosen) face.note(step_text(*made.chosen, mesh->device_count()));
  return made;
}

Result<DividedCode> parts_code(const ShardedModel& model, const NativeOptions& options,
                               const DeviceOptions& devices, int64_t memory_limit,
                               const Face& face) {
  DeviceOptions parts = devices;
  parts.batch = divided_inputs(model.partition);
  return collective_code(model_of(model.partition.graph), {}, options, parts, memory_limit, face);
}

Result<MeshCode> mesh_code(const Graph& graph, const ShardRequest& request,
                           const ShardCosts& prices, const NativeOptions& options,
                           const DeviceOptions& devices, int64_t memory_limit, const Face& face,
                           const LoadParts& load) {
  MeshCode made = {.model = HONE_TRY(sharded_on(graph, request, devices, prices, face))};
  made.devices =
      HONE_TRY(load(HONE_TRY(parts_code(made.model, options, devices, memory_limit, face))));
  made.whole =
      HONE_TRY(MeshModel::make(mesh_division(graph, made.model.subject, made.model.partition),
                               made.model.subject.constants, made.devices));
  return made;
}

std::string mesh_code_text(const MeshCode& code, int64_t cores) {
  const Mesh& mesh = *code.model.partition.mesh;
  return fmt::format("mesh {}: {}", mesh_text(mesh), meeting_text(*code.devices, cores));
}

}  // namespace hone
