#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace hone {

// A seeded graph of convs as most of models are, one after another. They have windows of 3 side by
// side, constant weights of f32, some in groups, some of an open batch, with a bias, a maximum or a
// sum behind them.
Graph random_convs(uint64_t seed);

}  // namespace hone
