#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Where buffers lie in one arena, so that those that live at the same time do not overlap.

namespace hone {

struct ArenaItem {
  int64_t first = 0;  // it is in use from this moment on,
  int64_t last = 0;   // up to the end of this one
  int64_t bytes = 0;
  int64_t alignment = 64;
  std::optional<int64_t> offset = {};  // where it must lie; such items fit each other
};

struct Arena {
  std::vector<int64_t> offsets;  // per item
  int64_t bytes = 0;             // the end of the last item
};

// Deterministic. Of up to some thousand items, the better of two greedy placements: in the order of
// time, and largest first; of more, the first, which takes O(n log n).
Arena place(std::span<const ArenaItem> items);

// No placement can be smaller: the most bytes in use at one moment.
int64_t peak_bytes(std::span<const ArenaItem> items);

}  // namespace hone
