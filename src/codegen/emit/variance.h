#pragma once

#include <cstdint>
#include <vector>

#include "program/tiles/tiles.h"

namespace hone::code {

// A set of unroll and lanes loops: bit d stands for the loop inside of d others of them.
using LoopSet = uint32_t;
inline constexpr int kMaxLockstepDepth = 32;

// Says for each scalar and index of which unroll and lanes loops it depends. One that depends on
// none is computed once for all trips.
struct Variance {
  explicit Variance(const TileProgram& program);
  LoopSet of(const IndexExpr& expr) const;
  LoopSet of(const std::vector<IndexExpr>& index, const std::vector<Guard>& guards) const;

  std::vector<LoopSet> scalars;
  std::vector<LoopSet> indices;
};

// Checks unroll and lanes loops. None is inside of more than kMaxLockstepDepth - 1 others, and no
// lanes loop is inside of another one. Their extents are numbers, and spans do not depend on them.
Status check_lockstep(const TileProgram& program);

}  // namespace hone::code
