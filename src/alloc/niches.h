#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Boxes are placed from below: into the lowest niche of what lies there comes one that fits between
// its walls.

namespace hone {

struct Box {
  int32_t first = 0;  // in use in the sections [first, end)
  int32_t end = 0;
  int64_t size = 0;
  // The offset leaves the remainder `phase`.
  int64_t alignment = 1;
  int64_t phase = 0;

  int32_t length() const { return end - first; }
  double area() const { return static_cast<double>(length()) * static_cast<double>(size); }
  // The least offset from `from` on that the alignment allows.
  int64_t aligned_up(int64_t from) const {
    const int64_t behind = (from - phase) % alignment;
    if (behind == 0) return from;
    return from + (behind < 0 ? -behind : alignment - behind);
  }
};

enum class BoxRank : uint8_t { length, area, size };

// The boxes, the highest rank first. If `crowded`, those that live where the load is close to its
// peak come before all others.
std::vector<uint32_t> ranked(std::span<const Box> boxes, int32_t sections, BoxRank rank,
                             bool crowded);

// Per box, where it lies. The first in the order that fits is placed: `leftmost`, of those that
// begin first in the niche. O(n log n) for most orders.
std::vector<int64_t> fill_niches(std::span<const Box> boxes, int32_t sections,
                                 std::span<const uint32_t> order, bool leftmost);

// Ways to fill niches that are worth a try, the best first; of many boxes, in which each takes a
// tenth of a second, the first ones.
struct NicheRule {
  BoxRank rank;
  bool crowded;
  bool leftmost;
};
std::span<const NicheRule> niche_rules(size_t boxes);

}  // namespace hone
