#pragma once

#include <span>
#include <vector>

#include "ir/access.h"

// Where a reshape reads: per operand dim, an expression of the result's index.

namespace hone {

// The two sides are cut into as many groups of equal element count as can be proved. Each group is
// mapped on its own, so that [b, 6, 4] -> [b, 24] or [12, n] -> [3, 4, n] stay simple. A group that
// splits a dim gives an affine map, one that merges dims gives floordiv and mod by a stride.
std::vector<IndexExpr> reshape_index(std::span<const Dim> from, std::span<const Dim> to);

}  // namespace hone
