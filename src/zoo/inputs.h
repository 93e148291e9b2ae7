#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace hone {

// Random inputs on which a graph runs without trouble. Reals are normal and bools are coins.
// Integers stay within what they index (the rows of a gathered table, the places of an updated
// tensor); if they index nothing, they are 0 and 1. Symbols that `bindings` leaves free take their
// smallest value above 0.
Result<std::vector<Tensor>> random_inputs(const Graph& graph, uint64_t seed,
                                          const Bindings& bindings = {});

}  // namespace hone
