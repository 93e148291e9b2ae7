#pragma once

#include <array>
#include <cstddef>

#include "runtime/cuda/device.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone {

// An error if no driver makes such a map, of a kernel that has as many buffers.
Status check_map(const GpuMap& map, int64_t buffers);
// The bytes of the buffer. The map is good.
int64_t bytes_of(const GpuMap& map);

// A map of the memory at an address, as a parameter of a launch.
struct alignas(kMapAlignment) MapParameter {
  std::array<std::byte, kMapBytes> bytes = {};
};
Result<MapParameter> map_parameter(const CudaDevice& device, const GpuMap& map,
                                   cuda::Address address);

}  // namespace hone
