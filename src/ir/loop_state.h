#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

// Tells for each state of a while or scan whether the body passes it on unchanged. Empty for other
// nodes.
std::vector<bool> unchanged_state(const Graph& graph, NodeId node);

// How often a scan or a while runs its body. Nobody knows it of a while.
Dim loop_trips(const Graph& graph, NodeId node);
inline constexpr int64_t kAssumedTrips = 8;

}  // namespace hone
