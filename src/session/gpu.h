#pragma once

#include "runtime/cuda/device.h"
#include "target/target.h"

namespace hone {

// The GPU as a target: what its driver says, and rates of the nearest preset for what it does not.
Result<Target> gpu_target(const CudaDevice& device);
// The same with the bandwidth that copies in its memory reach now, read and written together.
Result<Target> probed_gpu(std::shared_ptr<const CudaDevice> device);

}  // namespace hone
