#include "alloc/search.h"

#include <algorithm>

#include "alloc/floor_search.h"
#include "alloc/free_search.h"
#include "base/error.h"

namespace hone {

FoundPlacement search(const BlockPacking& packing, int64_t capacity,
                      const MemoryTechniques& techniques, Limits& limits, MemoryCounts& counts) {
  HONE_CHECK(packing.blocks.size() <= kMaxSearchedBlocks, "{} blocks", packing.blocks.size());
  if (std::ranges::any_of(loads(packing), [&](int64_t load) { return load > capacity; }))
    return {Found::none, {}};
  if (!techniques.floors || !is_for_floors(packing))
    return search_freely(packing, capacity, techniques, limits, counts);
  return search_floors(packing, capacity, techniques,
                       techniques.learned ? learned_guide() : plain_guide(), limits, counts);
}

}  // namespace hone
