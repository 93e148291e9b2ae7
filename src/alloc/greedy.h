#pragma once

#include "alloc/blocks.h"
#include "alloc/limits.h"

namespace hone {

// The best of several quick placements; they look at no capacity, only at how low they end. Blocks
// with an offset stay there. In O(n log n) where all blocks are boxes. The first one is always
// made, however late it is.
Placement place_greedily(const Packing& packing, Limits& limits);

// Makes a placement lower, one stretch of time or of memory after the other, until it is at the
// bound, nothing helps, or it is late. Never makes it higher. Takes up to a second where blocks are
// many or, `to_the_end`, all the time that there is; the steps of a search are none of its own.
void improve(const Packing& packing, int64_t bound, Placement& placement, Limits& limits,
             bool to_the_end = false);

}  // namespace hone
