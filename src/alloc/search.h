#pragma once

#include "alloc/blocks.h"
#include "alloc/limits.h"
#include "alloc/plan_memory.h"

namespace hone {

constexpr size_t kMaxSearchedBlocks = 4096;  // what they overlap is kept pair by pair

enum class Found : uint8_t { placement, none, limit };

struct FoundPlacement {
  Found found = Found::limit;
  std::vector<int64_t> offsets = {};  // per block, of a placement
};

// Tells whether there is a placement below the capacity. The search is complete: it answers unless
// the limits are over. It takes at most kMaxSearchedBlocks blocks.
FoundPlacement search(const BlockPacking& packing, int64_t capacity,
                      const MemoryTechniques& techniques, Limits& limits, MemoryCounts& counts);

}  // namespace hone
