#pragma once

#include "alloc/search.h"

namespace hone {

// Blocks that have no placement below the capacity, from a packing that has none: so few that none
// can be left out, as far as that shows with some thousand steps of search.
std::vector<uint32_t> smallest_witness(const BlockPacking& packing, int64_t capacity,
                                       const MemoryTechniques& techniques, Limits& limits);

// The section in which the most of the blocks are in use.
int32_t busiest_section(const BlockPacking& packing, const std::vector<uint32_t>& blocks);

}  // namespace hone
