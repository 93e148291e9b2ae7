#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compilation.h"
#include "runtime/division.h"
#include "shard/batch_inputs.h"
#include "target/system.h"

// Code for devices that divide the batch of a graph.

namespace hone {

struct DividedCode {
  BatchDivision division = {};
  std::vector<image::Port> inputs = {};  // of all devices together
  std::vector<image::Port> outputs = {};
  std::vector<Image> images = {};       // for ManyDevices::load()
  std::vector<std::string> plans = {};  // of each image, as text
  std::string prices = {};              // that the plans were made by
};

// The graph is static. Code is made once for each number of rows that a device has, or for each
// device, if it depends on where its rows begin. If but one device has rows, it runs the graph as
// it is. The plan of the options says threads and nothing else.
//
// Devices meet in the order in which they begin to add up sums. So the plan of each keeps them in
// the order of the graph. The system has the devices, and its timeline schedules the sums. Null, or
// if some of its devices have no rows: their sizes do.
Result<DividedCode> divided_code(const Graph& whole, const BatchInputs& batch, int64_t devices,
                                 const Target& target, const CompileOptions& options,
                                 const System* system = nullptr);

// The inputs, or the outputs, of a graph. One without a name is called by kind and number.
std::vector<image::Port> ports_of(const Graph& graph, std::span<const ValueId> values,
                                  std::string_view kind);

}  // namespace hone
