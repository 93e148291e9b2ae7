#pragma once

#include "alloc/blocks.h"
#include "alloc/niches.h"

namespace hone {

// Returns a box around each block. Where all blocks have one alignment, sizes are rounded up to it,
// and the boxes have alignment 1. Fixed offsets are ignored.
std::vector<Box> hulls(const BlockPacking& packing);

int64_t height_of(const BlockPacking& packing, std::span<const int64_t> offsets);

}  // namespace hone
