#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernel/update.h"

namespace hone {

struct PlannedGraph;

// An update (kernel/update.h) is in place if it writes the changed elements alone, where its first
// operand lies.
//
// Any other node is in place if its result, an output of the graph, lies in the memory of an input
// that is donated to it. Its kernel still writes all of it, and may read the input only where it
// writes, point by point; so memory of its own serves as well.
// The value that the node changes if it is in place: the first operand of an update, the input that
// is donated to the result of another node. None: there is nothing.
ValueId changed_by(GraphView graph, NodeId node);

// Says whether the node may work in place whatever else a plan decides, and why not. The changed
// value is neither a constant nor an output; an update's operand is an input only if
// updates_of_input() has a value. A plan may still have what it changes read too late, or make a
// view of it.
Status check_in_place(GraphView graph, UsersView users, NodeId node);
// The same check of a node that passes it, in the groups and views of a plan. No other memory is
// changed, and what the kernel computes from an input that it changes is elementwise.
Status check_in_place(const PlannedGraph& graph, UsersView users, NodeId node);

// The update changes an input that is donated to its result, or to that of updates behind it:
// these, from the last on. If all of them work in place, the input's memory is the output's.
std::optional<std::vector<NodeId>> updates_of_input(GraphView graph, NodeId update);

// Nodes that may work in place, too, when all groups are decided: one after another, from the last
// on, those that the caller wants. One that changes what is read behind it is left out, or for
// which that is not found out soon, and so are others that change the same.
std::vector<NodeId> more_in_place(const PlannedGraph& graph, const Users& users,
                                  const std::function<bool(NodeId)>& wants);

}  // namespace hone
