#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "alloc/problem.h"

namespace hone {

// The least height of a small problem, found by trying all offsets: moments below 8, bytes below
// 64. Nothing if there is none at any height, as what is said of offsets contradicts itself.
class BruteForce {
 public:
  explicit BruteForce(const MemoryProblem& problem) : buffers_(problem.buffers) {
    std::vector<std::vector<size_t>> classes(buffers_.size());
    for (size_t i = 0; i < buffers_.size(); ++i) classes[root(i)].push_back(i);
    for (const std::vector<size_t>& members : classes)
      if (!members.empty()) groups_.push_back(group_of(members));
  }

  std::optional<int64_t> least_height() {
    // Buffers that can lie at several places never rule out all of them: the others can be lower.
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].places.empty()) return std::nullopt;
      for (size_t other = 0; other < i; ++other)
        if (groups_[i].is_fixed && groups_[other].is_fixed &&
            meet(groups_[i], groups_[i].places[0], groups_[other], groups_[other].places[0]))
          return std::nullopt;
    }
    at_.assign(groups_.size(), 0);
    int64_t load = 0;
    for (int moment = 0; moment < 8; ++moment) {
      int64_t bytes = 0;
      for (const Group& group : groups_) bytes += std::popcount(group.bytes[moment]);
      load = std::max(load, bytes);
    }
    for (int64_t height = load;; ++height)
      if (place(0, height)) return height;
  }

 private:
  struct Group {             // aliases of each other
    uint64_t bytes[8] = {};  // in use at each moment, from the root's offset on, plus kLowest
    int64_t height = 0;      // above the root's offset, of those that are ever in use
    bool is_fixed = false;
    std::vector<int64_t> places;
  };

  size_t root(size_t i) const {
    while (buffers_[i].alias) i = buffers_[i].alias->of;
    return i;
  }
  int64_t shift(size_t i) const {
    int64_t sum = 0;
    for (; buffers_[i].alias; i = buffers_[i].alias->of) sum += buffers_[i].alias->shift;
    return sum;
  }
  static uint64_t stretch(int64_t low, int64_t high) {
    return low >= high ? 0 : ((uint64_t{1} << (high - low)) - 1) << low;
  }

  Group group_of(const std::vector<size_t>& members) const {
    Group group;
    for (size_t i : members) {
      const MemoryBuffer& b = buffers_[i];
      bool is_used = false;
      for (int64_t moment = b.begin; moment < b.end; ++moment) {
        uint64_t bytes = stretch(0, b.size);
        for (const MemoryGap& gap : b.gaps)
          if (gap.begin <= moment && moment < gap.end) bytes = stretch(gap.low, gap.high);
        group.bytes[moment] |= bytes << shift(i);
        is_used |= bytes != 0;
      }
      if (is_used) group.height = std::max(group.height, shift(i) + b.size);
      group.is_fixed |= b.offset.has_value();
    }
    for (int64_t at = 0; at < 40; ++at)
      if (std::ranges::all_of(members, [&](size_t i) {
            const int64_t here = at + shift(i);
            return here % buffers_[i].alignment == 0 && buffers_[i].offset.value_or(here) == here;
          }))
        group.places.push_back(at);
    return group;
  }

  static bool meet(const Group& a, int64_t at_a, const Group& b, int64_t at_b) {
    for (int moment = 0; moment < 8; ++moment)
      if (at_a >= at_b ? (a.bytes[moment] << (at_a - at_b) & b.bytes[moment]) != 0
                       : (b.bytes[moment] << (at_b - at_a) & a.bytes[moment]) != 0)
        return true;
    return false;
  }

  bool place(size_t i, int64_t height) {
    if (i == groups_.size()) return true;
    for (int64_t at : groups_[i].places) {
      if (groups_[i].height > 0 && at + groups_[i].height > height) return false;
      at_[i] = at;
      bool is_free = true;
      for (size_t other = 0; other < i && is_free; ++other)
        is_free = !meet(groups_[i], at, groups_[other], at_[other]);
      if (is_free && place(i + 1, height)) return true;
      if (groups_[i].height == 0) return false;  // in nobody's way
    }
    return false;
  }

  const std::vector<MemoryBuffer>& buffers_;
  std::vector<Group> groups_;
  std::vector<int64_t> at_;
};

inline std::optional<int64_t> least_height(const MemoryProblem& problem) {
  return BruteForce(problem).least_height();
}

}  // namespace hone
