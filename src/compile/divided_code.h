#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compilation.h"
#include "runtime/many_devices.h"
#include "shard/batch_inputs.h"
#include "target/system.h"

// Code for devices that divide the batch of a graph.

namespace hone {

// A GPU of this machine that is one of the devices, and how code is made for it.
struct GpuPart {
  std::shared_ptr<const CudaDevice> device = nullptr;
  Target target = {};
  std::shared_ptr<const Cost> cost = nullptr;  // null: analytic
};
// The GPUs by device; null, or none: it is a part of this machine's CPU.
using GpuParts = std::vector<std::shared_ptr<const GpuPart>>;

struct DividedCode {
  BatchDivision division = {};
  std::vector<image::Port> inputs = {};  // of all devices together
  std::vector<image::Port> outputs = {};
  std::vector<Image> images = {};                        // for ManyDevices::load()
  std::vector<std::string> plans = {};                   // of each image, as text
  std::vector<std::vector<GpuKernel>> gpu_kernels = {};  // of each image; empty: it is for CPUs
  std::string prices = {};                               // that the plans were made by

  // Compiles one more image.
  Status add(Compilation& compilation);
};

// The rows of each device. Devices of several sorts have them by speed: how long the whole batch
// and half of it would take on each of them, by price. The way of data to a GPU and back counts.
// All of one sort have equally many. So have all if one of these prices cannot be told: a part
// may be compiled where the whole is not. The rest is as in divided_code().
std::vector<BatchShare> shares_by_speed(const Graph& whole, const BatchInputs& batch,
                                        int64_t devices, const Target& target,
                                        const CompileOptions& options, const GpuParts& gpus);

// The graph is static. Code is made once for each number of rows that a device has, or for each
// device, if it depends on where its rows begin. If but one device has rows, it runs the graph as
// it is. The plan of the options says threads and nothing else.
//
// Devices meet in the order in which they begin to add up sums. So the plan of each keeps them in
// the order of the graph. The system has the devices, and its timeline schedules the sums. Null, or
// if some of its devices have no rows: their sizes do.
Result<DividedCode> divided_code(const Graph& whole, const BatchInputs& batch, int64_t devices,
                                 const Target& target, const CompileOptions& options,
                                 const System* system = nullptr, const GpuParts& gpus = {});

// The options of code for a device: those of the CPU's, or of a GPU.
CompileOptions options_of(const CompileOptions& options, const GpuPart* gpu);
// Whatever exchanges data, in the order of the graph: so devices of several sorts meet.
void keep_order(const Graph& graph, Plan& plan);
// The options with all that loading the code on these devices needs.
LoadDivided load_options(const DividedCode& code, const GpuParts& gpus, LoadDivided options);

// The inputs, or the outputs, of a graph. One without a name is called by kind and number.
std::vector<image::Port> ports_of(const Graph& graph, std::span<const ValueId> values,
                                  std::string_view kind);

}  // namespace hone
