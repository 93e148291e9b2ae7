#pragma once

#include "alloc/search.h"

namespace hone {

// Finds blocks of a packing that have no placement below the capacity; the packing has none. The
// set is minimal: no block can be left out, as far as some thousand steps of search show.
std::vector<uint32_t> smallest_witness(const BlockPacking& packing, int64_t capacity,
                                       const MemoryTechniques& techniques, Limits& limits);

// The section in which the most of the blocks are in use.
int32_t busiest_section(const BlockPacking& packing, const std::vector<uint32_t>& blocks);

}  // namespace hone
