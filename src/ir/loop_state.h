#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

// Per state of a while or scan: whether its body hands it on as it is. Empty for other nodes.
std::vector<bool> unchanged_state(const Graph& graph, NodeId node);

}  // namespace hone
