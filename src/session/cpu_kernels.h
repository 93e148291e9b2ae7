#pragma once

#include <string>
#include <vector>

#include "compile/compilation.h"

namespace hone {

// A kernel of a GPU's plan that the CPU beside it runs.
struct CpuKernel {
  std::string name;
  std::string why;
};

// The kernels without code for the GPU. They are compiled for that, if they are not yet. A plan for
// a CPU has none.
struct GpuShare {
  size_t kernels = 0;  // of the plan, different ones
  std::vector<CpuKernel> on_cpu;
};
Result<GpuShare> gpu_share(Compilation& compilation);

// "all 12 kernels run on the GPU", or a line for each of the first `most` that do not.
std::string gpu_share_text(const GpuShare& share, size_t most);

}  // namespace hone
