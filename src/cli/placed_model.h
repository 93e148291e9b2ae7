#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/arguments.h"
#include "search/placed_graph.h"
#include "session/inputs.h"
#include "worker/each_device.h"

// Models under a plan that says which device computes what.

namespace hone::cli {

class Console;
struct Processes;

// The plan of --plan, if it says who computes what: it is for one graph.
Result<std::optional<DevicePlan>> given_device_plan(const Arguments& arguments);

// A model whose kernels are on the devices that the plan says.
struct PlacedModel {
  PlacedGraph graph;
  PlacedPrograms programs;
  std::vector<std::shared_ptr<const Cost>> costs;  // by target of the system
  std::string how;                                 // "on 2 devices of 'ring:2'"

  // Its native code: takes what inputs_of_devices() gives.
  Result<std::shared_ptr<const EachDevice>> code(const Processes& processes, int64_t memory_limit,
                                                 const Arguments& arguments,
                                                 Console& console) const;
};

// The devices are those of --system, else as many parts of this machine as the plan or --devices
// say.
Result<PlacedModel> placed_model(const DevicePlan& plan, const Graph& graph,
                                 const Arguments& arguments, Console& console);

}  // namespace hone::cli
