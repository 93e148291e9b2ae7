#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "alloc/by_time.h"
#include "alloc/greedy.h"
#include "alloc/hulls.h"
#include "alloc/occupied.h"
#include "base/rng.h"

namespace hone {
namespace {

// The limit on work, in boxes that are looked at: hundreds of boxes take some hundredths of a
// second, tens of thousands a second.
constexpr int64_t kLooksPerBlock = 10'000, kMostImprovingLooks = 20'000'000;
constexpr int64_t kMostFailures = 1000;  // in a row
constexpr size_t kMostMoved = 256;
constexpr int64_t kMostAround = 30'000;

class Improver {
 public:
  Improver(const BlockPacking& packing, int64_t goal, Placement& placement, Limits& limits)
      : packing_(packing),
        goal_(goal),
        best_(placement),
        limits_(limits),
        hulls_(hulls(packing)),
        lives_(packing.sections),
        is_moved_(packing.blocks.size()),
        looks_left_(std::min(kLooksPerBlock * std::ssize(hulls_), kMostImprovingLooks)) {}

  void run() {
    if (is_done()) return;
    for (uint32_t i = 0; i < hulls_.size(); ++i) {
      lives_.add(hulls_[i].first, hulls_[i].end, i);
      ends_.emplace(end(i), i);
    }
    for (int64_t failures = 0; failures < kMostFailures && !is_done();)
      failures = move() ? 0 : failures + 1;
  }

 private:
  bool is_done() { return best_.height <= goal_ || looks_left_ < 0 || limits_.is_late(); }
  void count(int64_t looks) { looks_left_ -= looks; }

  // The highest block and some others from its time are placed again, all below the present height.
  // True if they fit there.
  bool move() {
    const uint32_t top = ends_.rbegin()->second;
    if (packing_.blocks[top].offset) {
      looks_left_ = -1;
      return false;
    }
    const std::vector<uint32_t> moved = chosen(top);
    if (moved.empty()) return false;
    int32_t first = hulls_[top].first, behind = hulls_[top].end;
    for (uint32_t i : moved) {
      first = std::min(first, hulls_[i].first);
      behind = std::max(behind, hulls_[i].end);
    }
    for (uint32_t i : moved) is_moved_[i] = true;
    Occupied occupied(behind - first);
    const int64_t looks = lives_.find(first, behind, [&](uint32_t i) {
      if (!is_moved_[i]) occupied.add(within(i, first, behind), best_.offsets[i]);
    });
    for (uint32_t i : moved) is_moved_[i] = false;
    std::vector<int64_t> offsets;
    bool is_good = true;
    for (size_t k = 0; k < moved.size() && is_good; ++k) {
      const Block block = within(moved[k], first, behind);
      offsets.push_back(occupied.lowest(block));
      is_good = offsets.back() + block.size < best_.height;
      occupied.add(block, offsets.back());
    }
    count(behind - first + looks + occupied.looks());
    if (!is_good) return false;
    for (size_t k = 0; k < moved.size(); ++k) {
      ends_.erase({end(moved[k]), moved[k]});
      best_.offsets[moved[k]] = offsets[k];
      ends_.emplace(end(moved[k]), moved[k]);
    }
    best_.height = ends_.rbegin()->first;
    return true;
  }

  int64_t end(uint32_t i) const { return best_.offsets[i] + packing_.blocks[i].size; }

  // Returns the highest block and some others, in the order of placing. Returns none where the time
  // of the block is so crowded that one move would take too long.
  std::vector<uint32_t> chosen(uint32_t top) {
    const Box& box = hulls_[top];
    const int32_t margin = static_cast<int32_t>(rng_.between(0, box.length()));
    std::vector<uint32_t> others;
    const int64_t looks = lives_.find(box.first, box.end, [&](uint32_t i) {
      if (i != top && !packing_.blocks[i].offset && hulls_[i].first >= box.first - margin &&
          hulls_[i].end <= box.end + margin)
        others.push_back(i);
    });
    count(looks);
    if (looks > kMostAround) return {};
    const size_t most = static_cast<size_t>(std::exp(rng_.uniform(1, std::log(kMostMoved))));
    if (others.size() > most) {
      if (rng_.chance(0.5))
        rng_.shuffle(others);
      else  // those that are next to it
        std::ranges::sort(others, std::greater(), [&](uint32_t i) { return std::pair(end(i), i); });
      others.resize(most);
    }
    others.push_back(top);
    const int64_t how = rng_.between(0, 2);
    const double noise = rng_.uniform(0, 2);
    std::vector<std::pair<double, uint32_t>> ranked;
    for (uint32_t i : others) {
      const Box& other = hulls_[i];
      const double key = how == 0   ? other.area()
                         : how == 1 ? static_cast<double>(other.size)
                                    : static_cast<double>(other.length());
      ranked.emplace_back(-key * std::exp(noise * (rng_.uniform() - 0.5)), i);
    }
    std::ranges::sort(ranked);
    std::ranges::transform(ranked, others.begin(), [](const auto& each) { return each.second; });
    return others;
  }

  // Cuts a block to the sections [first, end), and counts sections from `first`.
  Block within(uint32_t i, int32_t first, int32_t end) const {
    Block block = packing_.blocks[i];
    std::erase_if(block.slabs, [&](const Slab& s) { return s.first >= end || s.end <= first; });
    for (Slab& slab : block.slabs) {
      slab.first = std::max(slab.first, first) - first;
      slab.end = std::min(slab.end, end) - first;
    }
    return block;
  }

  const BlockPacking& packing_;
  const int64_t goal_;
  Placement& best_;
  Limits& limits_;
  const std::vector<Box> hulls_;
  ByTime<uint32_t> lives_;
  std::vector<bool> is_moved_;
  Rng rng_{1};
  int64_t looks_left_;
  std::set<std::pair<int64_t, uint32_t>> ends_;
};

}  // namespace

void improve(const BlockPacking& packing, int64_t goal, Placement& placement, Limits& limits) {
  if (!packing.blocks.empty()) Improver(packing, goal, placement, limits).run();
}

}  // namespace hone
