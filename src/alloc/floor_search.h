#pragma once

#include "alloc/guide.h"
#include "alloc/search.h"

namespace hone {

// True if the floor search can place them: all blocks are towers, whole in each section that they
// are in, and none has an offset.
bool is_for_floors(const BlockPacking& packing);

// The search for blocks without windows and offsets. Its state is the set of open blocks and a
// floor under each: there is a placement below the capacity, or none, with no open block below its
// floor. A step takes an open block of which none that it overlaps has a lower floor. Either it
// lies on its floor: what overlaps it comes above it, as there is no room below. Or it lies higher;
// then, in the placement in which no block can be moved down, it lies on another open block.
FoundPlacement search_floors(const BlockPacking& packing, int64_t capacity,
                             const MemoryTechniques& techniques, const Guide& guide, Limits& limits,
                             MemoryCounts& counts);

}  // namespace hone
