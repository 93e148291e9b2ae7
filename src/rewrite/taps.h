#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

// The conv of its input and its weights without the outer taps that meet padding in every window.
// None: each outer tap meets an element, or sizes are not known.
Result<std::optional<Graph>> without_idle_taps(const Graph& graph, NodeId conv);

}  // namespace hone
