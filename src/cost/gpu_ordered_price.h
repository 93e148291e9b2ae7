#pragma once

#include "cost/gpu_block_price.h"

namespace hone {

// The terms of a kernel whose op combines points in order, as a sort does: few threads of a GPU
// take them one after another. Their program tells the instructions of a thread.
GpuTimes ordered_times(const KernelBody& body, const Target& target);

}  // namespace hone
