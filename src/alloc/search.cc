#include "alloc/search.h"

#include <algorithm>
#include <numeric>

#include "alloc/floor_search.h"
#include "alloc/free_search.h"
#include "base/error.h"
#include "base/rng.h"

namespace hone {
namespace {

// How many steps an order of the blocks has before the next one, and how many times as many that
// has: in the end one has enough for a proof.
constexpr int64_t kFirstNodes = 5'000, kNodesPerBlock = 8;
constexpr double kGrowth = 1.5;

std::vector<uint32_t> shuffled(size_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  Rng rng(seed);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

FoundPlacement search_in_order(const BlockPacking& packing, int64_t capacity,
                               const MemoryTechniques& techniques, Limits& limits,
                               MemoryCounts& counts) {
  if (!techniques.floors || !is_for_floors(packing))
    return search_freely(packing, capacity, techniques, limits, counts);
  return search_floors(packing, capacity, techniques,
                       techniques.learned ? learned_guide() : plain_guide(), limits, counts);
}

}  // namespace

FoundPlacement search(const BlockPacking& packing, int64_t capacity,
                      const MemoryTechniques& techniques, Limits& limits, MemoryCounts& counts) {
  HONE_CHECK(packing.blocks.size() <= kMaxSearchedBlocks, "{} blocks", packing.blocks.size());
  if (std::ranges::any_of(loads(packing), [&](int64_t load) { return load > capacity; }))
    return {Found::none, {}};
  if (!techniques.orders) return search_in_order(packing, capacity, techniques, limits, counts);

  auto nodes = static_cast<double>(kFirstNodes + kNodesPerBlock * std::ssize(packing.blocks));
  Limits first(static_cast<int64_t>(nodes), limits);
  FoundPlacement result = search_in_order(packing, capacity, techniques, first, counts);
  for (uint64_t seed = 1; result.found == Found::limit && !limits.over(); ++seed) {
    nodes *= kGrowth;
    ++counts.restarts;
    Limits part(static_cast<int64_t>(nodes), limits);
    const std::vector<uint32_t> order = shuffled(packing.blocks.size(), seed);
    FoundPlacement other =
        search_in_order(in_order(packing, order), capacity, techniques, part, counts);
    result.found = other.found;
    if (other.found != Found::placement) continue;
    result.offsets.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) result.offsets[order[i]] = other.offsets[i];
  }
  return result;
}

}  // namespace hone
