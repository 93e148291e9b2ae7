#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace hone {

// A seeded graph of kernels that pass arrays on through concats and slices along one dim, many of
// which can be views: of arrays in blocks of channels, too.
Graph random_joins(uint64_t seed);

}  // namespace hone
