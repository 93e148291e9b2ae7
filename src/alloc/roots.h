#pragma once

#include "alloc/blocks.h"
#include "alloc/folding.h"
#include "alloc/limits.h"

namespace hone {

constexpr size_t kMostRootsSearched = 400;

// Places what is left of a folding, in several orders and, if it is little, by search: below the
// goal if that is found, otherwise at the lowest.
Placement place_roots(const Folding& folding, int32_t sections, int64_t goal, Limits& limits);

}  // namespace hone
