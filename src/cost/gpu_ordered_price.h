#pragma once

#include "cost/gpu_block_price.h"

namespace hone {

// The terms of a kernel whose op combines points in order, as a sort does. Its program tells the
// instructions of a thread, the barriers of a block and the launches.
GpuTimes ordered_times(const KernelBody& body, const Schedule& schedule, const Target& target);

}  // namespace hone
