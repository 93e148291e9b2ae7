#pragma once

#include "alloc/blocks.h"
#include "alloc/limits.h"

namespace hone {

// Returns the first of several quick placements that is at most as high as the goal, otherwise the
// lowest. Blocks with a fixed offset stay there. Takes O(n log n) where all blocks are boxes. The
// first placement is always made, however late it is.
Placement place_greedily(const BlockPacking& packing, int64_t goal, Limits& limits);

// Makes a placement lower. Some of the highest blocks look for lower places, again and again, until
// the height is the goal, many tries in a row fail, or the limits are over. The height never rises.
// Takes up to a second where blocks are many; its tries are no steps of the search.
void improve(const BlockPacking& packing, int64_t goal, Placement& placement, Limits& limits);

}  // namespace hone
