#pragma once

#include "alloc/blocks.h"
#include "alloc/by_time.h"

namespace hone {

// The blocks placed so far, of any form. It tells where the next one may lie.
class Occupied {
 public:
  explicit Occupied(int32_t sections);

  void add(const Block& block, int64_t offset);
  // The least offset at which the block overlaps nothing.
  int64_t lowest(const Block& block);
  // An offset above all that lies in the block's sections. O(log n) per slab.
  int64_t on_top(const Block& block) const;
  // How much was looked at by `lowest`.
  int64_t looks() const { return looks_; }

 private:
  int64_t top(const Slab& slab) const;
  void raise(const Slab& slab, int64_t height);

  struct Stretch {
    int64_t low, high;
  };
  ByTime<Stretch> placed_;
  // A segment tree of heights: of all sections below a node, and the highest of them.
  struct Node {
    int64_t of_all = 0;
    int64_t highest = 0;
  };
  size_t leaves_;
  std::vector<Node> tree_;
  std::vector<std::pair<int64_t, int64_t>> forbidden_;  // of `lowest`
  int64_t looks_ = 0;
};

}  // namespace hone
