#pragma once

#include <vector>

#include "base/error.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/image.h"

namespace hone {

// The input of a GPU's runtime: a Program for one set of sizes, flattened. A kernel of the image
// that has an object runs on the CPU beside the GPU; `kernels` has the code of each of the others,
// and of the former none.
struct GpuImage {
  Image image;
  std::vector<GpuKernel> kernels = {};  // by kernel of the image
};

// Scratch of all threads of a launch together. A kernel that has some gets no more threads than
// fit, which then take several trips each.
inline constexpr int64_t kMaxGpuScratch = int64_t{256} << 20;

// An error if no block of a GPU has as many threads, or if one has not as much shared memory.
Status check_block(const GpuPhase& phase, int64_t most_shared);
// An error if the driver would not read the text to its end, or if no memory lies as it wants.
Status check_code(const GpuKernel& kernel);

}  // namespace hone
