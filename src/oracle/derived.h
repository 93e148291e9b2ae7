#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace hone {

// Adds outputs to the graph: a loss, which is a weighted sum of its real outputs, and the gradients
// of the inputs that change it. Some values may be computed again for them. Null: its sizes are
// open, or the loss has no derivative.
std::optional<Graph> with_gradients(const Graph& graph, uint64_t seed);

}  // namespace hone
