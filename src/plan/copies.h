#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/graph_view.h"
#include "plan/plan.h"
#include "plan/value_names.h"

namespace hone {

// The graph that has the copies of a plan as nodes, each right before the first that reads it, and
// read by those that the plan says. A copy is a transpose that leaves the dims in their order; that
// of a constant is another constant, so that it is packed before the first run. Without copies it
// is the graph itself, which must live as long. An error says which copy cannot be.
Result<GraphRef> with_copies(const Graph& graph, const std::map<std::string, Copy>& copies);

// The copies of a plan behind the ids of the graph; their names come to those of the graph.
Result<Overlay> overlay_of(const Graph& graph, const Users& users,
                           const std::map<std::string, Copy>& copies, ValueNames& names);

// Tells whether the readers, in ascending order, may read a copy of this name, and why not.
Status check_copy(GraphView graph, const ValueNames& names, const std::string& name, ValueId of,
                  std::span<const NodeId> readers);

}  // namespace hone
