#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Places boxes from below. A niche is a stretch of sections at one height, between higher walls.
// The lowest niche takes a box that fits between its walls.

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

// Orders the boxes, the highest rank first. If `crowded`, boxes whose life meets the peak of the
// load come before all others.
std::vector<uint32_t> ranked(std::span<const Box> boxes, int32_t sections, BoxRank rank,
                             bool crowded);

// Returns the offset of each box. A niche takes the first box in the order that fits; if
// `leftmost`, only boxes with the earliest begin in the niche may come. O(n log n) for most orders.
std::vector<int64_t> fill_niches(std::span<const Box> boxes, int32_t sections,
                                 std::span<const uint32_t> order, bool leftmost);

// The ways to fill niches, the best first.
struct NicheRule {
  BoxRank rank;
  bool crowded;
  bool leftmost;
};
inline constexpr NicheRule kNicheRules[] = {
    {BoxRank::length, false, true}, {BoxRank::area, false, true}, {BoxRank::length, true, false},
    {BoxRank::area, true, false},   {BoxRank::size, false, true}, {BoxRank::size, true, false},
};

}  // namespace hone
