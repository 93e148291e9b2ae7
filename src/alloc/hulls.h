#pragma once

#include "alloc/blocks.h"
#include "alloc/niches.h"

namespace hone {

// Per block, a box that holds it. If all alignments are one and the same, sizes are rounded up to
// it, and the boxes have none. Fixed offsets are left out.
std::vector<Box> hulls(const Packing& packing);
// Whether none of them has an alignment.
bool are_alike(std::span<const Box> boxes);

int64_t height_of(const Packing& packing, std::span<const int64_t> offsets);

}  // namespace hone
