#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/mesh_model.h"
#include "session/devices.h"

// Code for models whose values the devices of a mesh divide.

namespace hone {

// Prices that choose a sharding, one for each target of the system, and the limits of the search.
struct ShardCosts {
  std::vector<std::shared_ptr<const Cost>> costs;
  AutoShardOptions options = {};
};

// The graph on these devices as the request says. The face is told how long a step takes, if prices
// chose something.
Result<ShardedModel> sharded_on(const Graph& graph, const ShardRequest& request,
                                const DeviceOptions& devices, const ShardCosts& prices,
                                const Face& face = {});
// The code of all devices, for their parts.
Result<DividedCode> parts_code(const ShardedModel& model, const NativeOptions& options,
                               const DeviceOptions& devices, int64_t memory_limit,
                               const Face& face = {});

struct MeshCode {
  ShardedModel model = {};
  std::shared_ptr<const ManyDevices> devices = nullptr;
  std::shared_ptr<const MeshModel> whole = nullptr;  // takes and gives the tensors of the graph
};
using LoadParts =
    std::function<Result<std::shared_ptr<const ManyDevices>>(const DividedCode& code)>;
// Both, on the devices that `load` puts the code on.
Result<MeshCode> mesh_code(const Graph& graph, const ShardRequest& request,
                           const ShardCosts& prices, const NativeOptions& options,
                           const DeviceOptions& devices, int64_t memory_limit, const Face& face,
                           const LoadParts& load);

// "mesh x=2,y=4: 8 devices of 1 thread, which meet in collectives", which share these cores.
std::string mesh_code_text(const MeshCode& code, int64_t cores);

}  // namespace hone
