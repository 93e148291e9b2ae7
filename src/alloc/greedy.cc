#include "alloc/greedy.h"

#include <algorithm>
#include <numeric>

#include "alloc/hulls.h"
#include "alloc/occupied.h"

namespace hone {
namespace {

// The limit on the looks of one order of first fit: some tenths of a second. Later blocks go on
// top.
constexpr int64_t kMostGreedyLooks = 50'000'000;

class Greedy {
 public:
  Greedy(const BlockPacking& packing, int64_t goal, Limits& limits)
      : packing_(packing), goal_(goal), limits_(limits), hulls_(hulls(packing)) {
    best_.height = INT64_MAX;
  }

  Placement place() {
    if (std::ranges::none_of(packing_.blocks, [](const Block& b) { return b.offset.has_value(); }))
      fill_all_niches();
    if (best_.height > goal_ && !all_boxes()) fit_all_first();
    return std::move(best_);
  }

 private:
  bool all_boxes() const {
    return std::ranges::all_of(packing_.blocks,
                               [](const Block& b) { return b.is_box() && !b.offset; });
  }

  bool is_done() { return best_.height <= goal_ || limits_.is_late(); }

  void offer(std::vector<int64_t> offsets) {
    const int64_t height = height_of(packing_, offsets);
    if (height >= best_.height) return;
    best_.offsets = std::move(offsets);
    best_.height = height;
  }

  void fill_all_niches() {
    const bool are_boxes = all_boxes();
    for (const NicheRule& rule : kNicheRules) {
      const std::vector<uint32_t> order =
          ranked(hulls_, packing_.sections, rule.rank, rule.crowded);
      std::vector<int64_t> offsets = fill_niches(hulls_, packing_.sections, order, rule.leftmost);
      offer(are_boxes ? std::move(offsets) : settled(offsets));
      if (is_done()) return;
    }
  }

  // Lets the blocks fall to the ground or onto others, the lowest block first.
  std::vector<int64_t> settled(std::span<const int64_t> offsets) const {
    std::vector<uint32_t> order(offsets.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(offsets[i], i); });
    std::vector<int64_t> result(offsets.size());
    Occupied occupied(packing_.sections);
    for (uint32_t i : order) {
      result[i] = occupied.on_top(packing_.blocks[i]);
      occupied.add(packing_.blocks[i], result[i]);
    }
    return result;
  }

  void fit_all_first() {
    for (const bool crowded : {false, true})
      for (const BoxRank rank : {BoxRank::area, BoxRank::size, BoxRank::length}) {
        offer(fit_first(ranked(hulls_, packing_.sections, rank, crowded)));
        if (is_done()) return;
      }
  }

  std::vector<int64_t> fit_first(std::span<const uint32_t> order) const {
    std::vector<int64_t> result(order.size());
    Occupied occupied(packing_.sections);
    const auto put = [&](uint32_t i, int64_t offset) {
      result[i] = offset;
      occupied.add(packing_.blocks[i], offset);
    };
    for (uint32_t i : order)
      if (const Block& block = packing_.blocks[i]; block.offset) put(i, *block.offset);
    for (uint32_t i : order) {
      const Block& block = packing_.blocks[i];
      if (block.offset) continue;
      put(i, occupied.looks() < kMostGreedyLooks ? occupied.lowest(block) : occupied.on_top(block));
    }
    return result;
  }

  const BlockPacking& packing_;
  const int64_t goal_;
  Limits& limits_;
  const std::vector<Box> hulls_;
  Placement best_;
};

}  // namespace

std::vector<Box> hulls(const BlockPacking& packing) {
  const Block& any = packing.blocks.front();
  const bool is_one = std::ranges::all_of(
      packing.blocks, [&](const Block& b) { return b.alignment == any.alignment && b.phase == 0; });
  std::vector<Box> result;
  for (const Block& block : packing.blocks) {
    Box box{block.first(), block.end(), block.size, block.alignment, block.phase};
    if (is_one) {
      box.size = box.aligned_up(box.size);
      box.alignment = 1;
    }
    result.push_back(box);
  }
  return result;
}

int64_t height_of(const BlockPacking& packing, std::span<const int64_t> offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    height = std::max(height, offsets[i] + packing.blocks[i].size);
  return height;
}

Placement place_greedily(const BlockPacking& packing, int64_t goal, Limits& limits) {
  if (packing.blocks.empty()) return {};
  return Greedy(packing, goal, limits).place();
}

}  // namespace hone
