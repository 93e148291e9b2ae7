#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ir/graph.h"
#include "tensor/tensor.h"
#include "transport/spmd.h"

// Random graphs that several devices run together, and runs of them.

namespace hone::tested {

using DeviceTensors = std::vector<std::vector<Tensor>>;  // of each device

struct SpmdCase {
  Graph graph;
  int32_t devices = 1;
  DeviceTensors inputs;
  // Numbers are small integers in any order of additions, so all results are exact. Else they are
  // any, NaN and infinities among them.
  bool is_exact = true;
};

// 1 to `devices` devices, in groups of any kind.
SpmdCase draw_spmd(uint64_t seed, int32_t devices, bool is_exact);
Tensor draw_tensor(Rng& rng, Type type, bool is_exact);

using RunDevice = std::function<Result<std::vector<Tensor>>(const DevicePlace& place)>;
// Runs all devices, each in a thread of its own. The error of any is that of all.
Result<DeviceTensors> run_devices(int32_t devices,
                                  const std::function<Transport&(int32_t device)>& transport_of,
                                  const RunDevice& run);
Result<DeviceTensors> run_by_threads(int32_t devices, const RunDevice& run);

// Compares with the reference evaluator of several devices; an empty text: all is well.
std::string judge(const SpmdCase& drawn, const DeviceTensors& outputs);
std::string same_bits(const DeviceTensors& a, const DeviceTensors& b);

}  // namespace hone::tested
