#pragma once

#include <array>
#include <functional>
#include <vector>

#include "codegen/emit/instructions.h"
#include "codegen/emit/variance.h"

namespace hone::code {

// Trips of the unroll loops around, by their depth.
using Trips = std::array<int64_t, kMaxLockstepDepth>;

// The values of a scalar or index that depends on the loops in `loops`. There is one for each
// combination of trips of the unroll loops among them, the innermost fastest. They are vectors if
// the lanes loop is among them.
struct Grid {
  LoopSet loops = 0;
  llvm::SmallVector<Value, 1> values = {};
};

// The unroll and lanes loops around the code that is being emitted.
class Lockstep {
 public:
  struct Open {
    tile::Index index;
    int64_t extent;
    bool is_lanes;
  };

  void push(Open loop) { open_.push_back(loop); }
  void pop() { open_.pop_back(); }
  const std::vector<Open>& open() const { return open_; }

  LoopSet innermost() const { return LoopSet{1} << (open_.size() - 1); }
  LoopSet lanes_loop() const;  // 0: there is none
  const Open* lanes() const;   // null: there is none

  // Calls body for each combination of trips of the unroll loops in the set, in the order of a
  // Grid.
  void each(LoopSet loops, const std::function<void(const Trips&)>& body) const;
  size_t points(LoopSet loops) const;  // values of a Grid
  size_t position(LoopSet loops, const Trips& trips) const;
  Value at(const Grid& grid, const Trips& trips) const;

 private:
  std::vector<Open> open_;
};

}  // namespace hone::code
