#pragma once

#include "alloc/search.h"

namespace hone {

// The search for any blocks, also with windows and offsets. Its state is what is placed, and how
// low each open block may lie. A step takes the open block that may lie lowest: there it lies, or
// higher, and then it touches another from above.
FoundPlacement search_freely(const BlockPacking& packing, int64_t capacity,
                             const MemoryTechniques& techniques, Limits& limits,
                             MemoryCounts& counts);

}  // namespace hone
