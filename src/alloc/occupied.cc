#include "alloc/occupied.h"

#include <algorithm>
#include <bit>

namespace hone {

Occupied::Occupied(int32_t sections)
    : placed_(sections),
      leaves_(std::bit_ceil(static_cast<size_t>(std::max(sections, 1)))),
      tree_(2 * leaves_) {}

void Occupied::add(const Block& block, int64_t offset) {
  for (const Slab& slab : block.slabs) {
    placed_.add(slab.first, slab.end, {offset + slab.low, offset + slab.high});
    raise(slab, offset + slab.high);
  }
}

int64_t Occupied::lowest(const Block& block) {
  forbidden_.clear();
  for (const Slab& slab : block.slabs)
    looks_ += placed_.find(slab.first, slab.end, [&](const Stretch& other) {
      if (other.high > slab.low)
        forbidden_.emplace_back(other.low - slab.high, other.high - slab.low);
    });
  std::ranges::sort(forbidden_);
  int64_t at = aligned_up(block, 0);
  for (const auto& [low, high] : forbidden_) {
    if (high <= at) continue;
    if (low >= at) break;
    at = aligned_up(block, high);
  }
  return at;
}

int64_t Occupied::on_top(const Block& block) const {
  int64_t at = 0;
  for (const Slab& slab : block.slabs) at = std::max(at, top(slab) - slab.low);
  return aligned_up(block, at);
}

int64_t Occupied::top(const Slab& slab) const {
  int64_t result = 0;
  size_t low = static_cast<size_t>(slab.first) + leaves_,
         high = static_cast<size_t>(slab.end) + leaves_;
  for (size_t i = low, j = high; i < j; i /= 2, j /= 2) {
    if (i % 2 == 1) result = std::max(result, tree_[i++].highest);
    if (j % 2 == 1) result = std::max(result, tree_[--j].highest);
  }
  for (size_t i = low; i > 0; i /= 2) result = std::max(result, tree_[i].of_all);
  for (size_t i = high - 1; i > 0; i /= 2) result = std::max(result, tree_[i].of_all);
  return result;
}

void Occupied::raise(const Slab& slab, int64_t height) {
  const size_t low = static_cast<size_t>(slab.first) + leaves_;
  const size_t high = static_cast<size_t>(slab.end) + leaves_;
  const auto cover = [&](size_t i) {
    tree_[i].of_all = std::max(tree_[i].of_all, height);
    for (; i > 0; i /= 2) tree_[i].highest = std::max(tree_[i].highest, height);
  };
  for (size_t i = low, j = high; i < j; i /= 2, j /= 2) {
    if (i % 2 == 1) cover(i++);
    if (j % 2 == 1) cover(--j);
  }
}

}  // namespace hone
