#pragma once

#include <string>
#include <vector>

#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/model.h"
#include "session/cpu_kernels.h"
#include "session/devices.h"
#include "session/face.h"

// Models on their way into a compiled file.

namespace hone {

// A graph as code: for its sizes, or for all of those that are open.
struct DeployedGraph {
  OpenImage open;  // if its sizes are numbers, the image alone
  bool is_open = false;
  std::string plan;
  std::string prices;
  std::string unknown;  // unknown_kernels_text()
  uint32_t unit = 0;
  int64_t capability = 0;  // HonecProgram
  std::vector<GpuKernel> gpu = {};
  GpuShare share = {};

  HonecProgram program() const {
    return {&open.image, plan, prices, is_open ? &open : nullptr, unit, capability, gpu};
  }
};
// A graph that can be compiled only when sizes are seen is refused, with the labels' way out.
Result<DeployedGraph> deployed_graph(const Graph& graph, uint32_t unit, const Target& target,
                                     CompileOptions options, const Labels& labels);

// A graph as code for devices that divide its batch: a graph for each code of the division.
struct DeployedDevices {
  BatchDivision division = {};
  std::vector<DeployedGraph> graphs = {};
};
// `open` is the graph before its sizes were chosen: they tell which inputs have the batch.
Result<DeployedDevices> deployed_devices(const Graph& open, const Graph& graph,
                                         const DeviceOptions& devices, const Target& target,
                                         const CompileOptions& options);

// The file's metadata of a model: `open` before sizes were chosen for programs, `bound` after. A
// part that has to be compiled when data are seen is refused by name.
Result<HonecModel> deployed_model(const Model& open, const Model& bound, const Labels& labels);

}  // namespace hone
