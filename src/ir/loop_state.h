#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

// Tells for each state of a while or scan whether the body passes it on unchanged. Empty for other
// nodes.
std::vector<bool> unchanged_state(const Graph& graph, NodeId node);

}  // namespace hone
