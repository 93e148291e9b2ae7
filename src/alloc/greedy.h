#pragma once

#include <optional>

#include "alloc/blocks.h"
#include "alloc/folding.h"
#include "alloc/limits.h"

namespace hone {

struct QuickPlacement : Placement {
  std::optional<Folding> folding = {};  // if the boxes nearly come out even
};

// The first of several quick placements that is below the goal, otherwise the lowest. Blocks with
// an offset stay there. In O(n log n) where all blocks are boxes. The first one is always made,
// however late it is.
QuickPlacement place_greedily(const Packing& packing, int64_t goal, Limits& limits);

// Makes a placement lower, one stretch of time or of memory after the other, until it is below the
// goal, nothing helps, or it is late. Never makes it higher. Takes up to a second where blocks are
// many or, `to_the_end`, all the time that there is; the steps of a search are none of its own.
void improve(const Packing& packing, int64_t goal, QuickPlacement& placement, Limits& limits,
             bool to_the_end = false);

}  // namespace hone
