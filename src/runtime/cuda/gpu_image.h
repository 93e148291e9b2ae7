#pragma once

#include <vector>

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

}  // namespace hone
