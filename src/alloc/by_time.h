#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone {

// A set of things that last for some sections. It finds them by these sections.
template <class Thing>
class ByTime {
 public:
  explicit ByTime(int32_t sections) {
    for (int32_t length = 1; length <= sections; length *= 2)
      levels_.emplace_back(static_cast<size_t>(sections / length) + 1);
  }

  void add(int32_t first, int32_t end, const Thing& thing) {
    const size_t level = std::bit_width(static_cast<uint32_t>(end - first)) - 1;
    levels_[level][static_cast<size_t>(first) >> level].push_back({first, end, thing});
  }

  // Calls `found` with each that lasts for one of the sections [first, end). How much was looked
  // at.
  int64_t find(int32_t first, int32_t end, const auto& found) const {
    int64_t looks = 0;
    for (size_t k = 0; k < levels_.size(); ++k) {
      // An entry that begins two cells before may reach into the first.
      const size_t from = static_cast<size_t>(first) >> k, to = static_cast<size_t>(end - 1) >> k;
      for (size_t cell = from - (from < 2 ? from : 2); cell <= to; ++cell) {
        looks += 1 + static_cast<int64_t>(levels_[k][cell].size());
        for (const Entry& entry : levels_[k][cell])
          if (entry.first < end && first < entry.end) found(entry.thing);
      }
    }
    return looks;
  }

 private:
  struct Entry {
    int32_t first, end;
    Thing thing;
  };
  // Entries that last for 2^k to 2^(k+1) - 1 sections, by where it begins, in cells of 2^k
  // sections.
  std::vector<std::vector<std::vector<Entry>>> levels_;
};

}  // namespace hone
