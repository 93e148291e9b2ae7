#include "alloc/witness.h"

#include <algorithm>
#include <numeric>

namespace hone {
namespace {

constexpr int64_t kNodesPerTrial = 5'000;
constexpr int64_t kNodesInAll = 200'000;

// The largest slabs of a section that are too much together. Each is at least as large as the last
// one, and without any of them the others would fit.
std::vector<uint32_t> of_load(const BlockPacking& packing, int32_t section, int64_t capacity) {
  std::vector<std::pair<int64_t, uint32_t>> sizes;
  for (uint32_t i = 0; i < packing.blocks.size(); ++i) {
    int64_t size = 0;
    for (const Slab& slab : packing.blocks[i].slabs)
      if (slab.first <= section && section < slab.end) size += slab.high - slab.low;
    if (size > 0) sizes.emplace_back(-size, i);
  }
  std::ranges::sort(sizes);
  std::vector<uint32_t> blocks;
  int64_t sum = 0;
  for (const auto& [size, block] : sizes) {
    if (sum > capacity) break;
    blocks.push_back(block);
    sum -= size;
  }
  return blocks;
}

BlockPacking only(const BlockPacking& packing, const std::vector<uint32_t>& blocks) {
  BlockPacking part;
  part.sections = packing.sections;
  for (uint32_t i : blocks) part.blocks.push_back(packing.blocks[i]);
  return part;
}

}  // namespace

std::vector<uint32_t> smallest_witness(const BlockPacking& packing, int64_t capacity,
                                       const MemoryTechniques& techniques, Limits& limits) {
  std::vector<uint32_t> blocks(packing.blocks.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<int64_t> load = loads(packing);
  const auto most = std::ranges::max_element(load);
  if (most != load.end() && *most > capacity)
    blocks = of_load(packing, static_cast<int32_t>(most - load.begin()), capacity);
  if (blocks.size() > kMaxSearchedBlocks) return blocks;
  Limits all(kNodesInAll, limits);
  // First large parts at once, then smaller ones.
  for (size_t part = std::bit_ceil(blocks.size()) / 2; part > 0; part /= 2)
    for (size_t at = 0; at < blocks.size() && !all.over();) {
      std::vector<uint32_t> rest(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(at));
      if (at + part < blocks.size())
        rest.insert(rest.end(), blocks.begin() + static_cast<ptrdiff_t>(at + part), blocks.end());
      Limits trial(kNodesPerTrial, all);
      MemoryCounts counts;
      const bool is_enough =
          search(only(packing, rest), capacity, techniques, trial, counts).found == Found::none;
      if (is_enough)
        blocks = std::move(rest);
      else
        at += part;
    }
  return blocks;
}

int32_t busiest_section(const BlockPacking& packing, const std::vector<uint32_t>& blocks) {
  std::vector<int32_t> change(static_cast<size_t>(packing.sections) + 1);
  for (uint32_t i : blocks)
    for (const Slab& slab : packing.blocks[i].slabs) {
      ++change[static_cast<size_t>(slab.first)];
      --change[static_cast<size_t>(slab.end)];
    }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return static_cast<int32_t>(std::ranges::max_element(change) - change.begin());
}

}  // namespace hone
