#pragma once

#include "alloc/folding.h"
#include "alloc/limits.h"

namespace hone {

constexpr size_t kMostRootsSearched = 400;

// Places what is left of a folding, in several orders and, if it is little, by search: the offsets
// of its boxes, below the goal if that is found, otherwise at the lowest.
std::vector<int64_t> place_roots(const Folding& folding, int32_t sections, int64_t goal,
                                 Limits& limits);

}  // namespace hone
