#pragma once

#include <map>
#include <string>

#include "ir/graph_view.h"
#include "plan/plan.h"

namespace hone {

// The graph that has the copies of a plan as nodes, each right before the first that reads it, and
// read by those that the plan says. A copy is a transpose that leaves the dims in their order; that
// of a constant is another constant, so that it is packed before the first run. Without copies it
// is the graph itself, which must live as long. An error says which copy cannot be.
Result<GraphRef> with_copies(const Graph& graph, const std::map<std::string, Copy>& copies);

// The sources and readers of a plan's copies, or which copy cannot be.
Result<std::vector<CopyOverlay>> find_copies(const Graph& graph,
                                             const std::map<std::string, Copy>& copies);

}  // namespace hone
