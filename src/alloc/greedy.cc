#include "alloc/greedy.h"

#include <algorithm>
#include <numeric>

#include "alloc/hulls.h"
#include "alloc/occupied.h"
#include "alloc/roots.h"

namespace hone {
namespace {

// The first is best where boxes are fine against the whole; where they are not, folding may be.
constexpr int kRulesBeforeFolding = 1;
constexpr size_t kNearlyEven = 4;  // boxes that come out even, for each that is left
// Of many boxes, in which each order takes a tenth of a second, no other is tried if so few are
// left.
constexpr size_t kMany = 20'000, kFewRoots = 15;
// What first fit looks at per order, some tenths of a second; what comes later goes on top.
constexpr int64_t kMostLooks = 50'000'000;

class Greedy {
 public:
  Greedy(const Packing& packing, int64_t goal, Limits& limits)
      : packing_(packing), goal_(goal), limits_(limits), hulls_(hulls(packing)) {
    best_.height = INT64_MAX;
  }

  QuickPlacement place() {
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
    int tried = 0;
    for (const NicheRule& rule : niche_rules(hulls_.size())) {
      const std::vector<uint32_t> order =
          ranked(hulls_, packing_.sections, rule.rank, rule.crowded);
      std::vector<int64_t> offsets = fill_niches(hulls_, packing_.sections, order, rule.leftmost);
      offer(are_boxes ? std::move(offsets) : settled(offsets));
      if (is_done()) return;
      if (++tried == kRulesBeforeFolding && are_alike(hulls_) && fold()) return;
      if (limits_.is_late()) return;
    }
  }

  // True if nothing else is worth a try: the goal is reached, or many boxes nearly come out even.
  bool fold() {
    Folding folding(hulls_, packing_.sections);
    offer(folding.unfold(place_roots(folding, packing_.sections, goal_, limits_).offsets));
    const size_t left = folding.count(), all = hulls_.size();
    if (left * kNearlyEven <= all) best_.folding = std::move(folding);
    return best_.height <= goal_ || (all > kMany && left * kFewRoots < all);
  }

  // Lets the blocks fall, one after the other, as far as they come.
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
      put(i, occupied.looks() < kMostLooks ? occupied.lowest(block) : occupied.on_top(block));
    }
    return result;
  }

  const Packing& packing_;
  const int64_t goal_;
  Limits& limits_;
  const std::vector<Box> hulls_;
  QuickPlacement best_;
};

}  // namespace

std::vector<Box> hulls(const Packing& packing) {
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

bool are_alike(std::span<const Box> boxes) {
  return std::ranges::all_of(boxes, [](const Box& box) { return box.alignment == 1; });
}

int64_t height_of(const Packing& packing, std::span<const int64_t> offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    height = std::max(height, offsets[i] + packing.blocks[i].size);
  return height;
}

QuickPlacement place_greedily(const Packing& packing, int64_t goal, Limits& limits) {
  if (packing.blocks.empty()) return {};
  return Greedy(packing, goal, limits).place();
}

}  // namespace hone
