#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "alloc/by_time.h"
#include "alloc/greedy.h"
#include "alloc/hulls.h"
#include "alloc/occupied.h"
#include "alloc/roots.h"
#include "alloc/search.h"

namespace hone {
namespace {

// How many boxes may be looked at: some hundredths of a second where there are hundreds, a second
// where there are many.
constexpr int64_t kLooksPerBlock = 10'000, kFoldingLooksPerBlock = 1000;
// Folding ends where so many led to nothing.
constexpr int64_t kIdleLooksPerBlock = 50;
constexpr int64_t kMostRefolded = 25'000'000, kMostMoving = 20'000'000;
// So few of what was placed last are worth to be placed again.
constexpr double kFewer = 0.5;
constexpr int64_t kLooksPerTry = 4'000'000;  // some hundredths of a second
constexpr int64_t kMostFailures = 1000;      // in a row
constexpr size_t kMostMoved = 256;
constexpr int64_t kMostAround = 30'000;

class Improver {
 public:
  Improver(const Packing& packing, int64_t goal, QuickPlacement& placement, Limits& limits,
           bool to_the_end)
      : packing_(packing),
        goal_(goal),
        best_(placement),
        limits_(limits),
        to_the_end_(to_the_end),
        hulls_(hulls(packing)),
        lives_(packing.sections),
        is_moved_(packing.blocks.size()) {}

  void run() {
    if (is_done()) return;
    const int64_t looks = kLooksPerBlock * std::ssize(hulls_);
    const int64_t folding = kFoldingLooksPerBlock * std::ssize(hulls_);
    looks_left_ = to_the_end_ ? INT64_MAX : std::min(folding, kMostRefolded);
    if (best_.folding) refold(*best_.folding);
    looks_left_ = to_the_end_ ? INT64_MAX : std::min(looks, kMostMoving);
    move_all();
  }

 private:
  bool is_done() { return best_.height <= goal_ || looks_left_ < 0 || limits_.is_late(); }
  void count(int64_t looks) { looks_left_ -= looks; }

  // Where boxes nearly come out even, other joints may do so. Of many, the large ones that are left
  // are tried often, as it shows soon whether they are few.
  void refold(Folding& folding) {
    std::optional<LargeRoots> large;
    if (hulls_.size() > kMaxSearchedBlocks) large.emplace(packing_, goal_, limits_);
    const auto try_large = [&] {
      if (!large) return;
      if (const auto roots = large->place(folding, best_.height)) offer(folding, *roots);
    };
    size_t placed = folding.count();
    const auto place_all = [&] {
      placed = folding.count();
      offer(folding, place_roots(folding, packing_.sections, goal_, limits_));
    };
    const int64_t most_idle = to_the_end_ ? INT64_MAX : kIdleLooksPerBlock * std::ssize(hulls_);
    int64_t looks = kLooksPerTry, idle = 0;
    while (folding.count() > 1 && idle <= most_idle && !is_done()) {
      const size_t before = folding.count();
      const int64_t more = folding.refold(rng_);
      count(more);
      idle = folding.count() < before ? 0 : idle + more;
      looks += more;
      if (looks > kLooksPerTry) {
        looks = 0;
        try_large();
      }
      if (static_cast<double>(folding.count()) <= kFewer * static_cast<double>(placed)) place_all();
    }
    if (folding.count() == placed || best_.height <= goal_ || limits_.is_late()) return;
    try_large();
    place_all();
  }

  void offer(const Folding& folding, const Placement& roots) {
    if (roots.height >= best_.height) return;
    best_.offsets = folding.unfold(roots.offsets);
    best_.height = height_of(packing_, best_.offsets);
  }

  void move_all() {
    if (is_done()) return;
    for (uint32_t i = 0; i < hulls_.size(); ++i) {
      lives_.add(hulls_[i].first, hulls_[i].end, i);
      ends_.emplace(end(i), i);
    }
    for (int64_t failures = 0; failures < kMostFailures && !is_done();)
      failures = move() ? 0 : failures + 1;
  }

  // One of the highest blocks, and some others that live when it does, look for other places below
  // the height that it is to leave.
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

  // The block, and some others; in the order in which they are to be placed. None where so many
  // live that one move would take too long.
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

  // What of a block is in the sections [first, end), which are counted from there.
  Block within(uint32_t i, int32_t first, int32_t end) const {
    Block block = packing_.blocks[i];
    std::erase_if(block.slabs, [&](const Slab& s) { return s.first >= end || s.end <= first; });
    for (Slab& slab : block.slabs) {
      slab.first = std::max(slab.first, first) - first;
      slab.end = std::min(slab.end, end) - first;
    }
    return block;
  }

  const Packing& packing_;
  const int64_t goal_;
  QuickPlacement& best_;
  Limits& limits_;
  const bool to_the_end_;
  const std::vector<Box> hulls_;
  ByTime<uint32_t> lives_;
  std::vector<bool> is_moved_;
  Rng rng_{1};
  int64_t looks_left_ = 0;
  std::set<std::pair<int64_t, uint32_t>> ends_;
};

}  // namespace

void improve(const Packing& packing, int64_t goal, QuickPlacement& placement, Limits& limits,
             bool to_the_end) {
  if (!packing.blocks.empty()) Improver(packing, goal, placement, limits, to_the_end).run();
}

}  // namespace hone
