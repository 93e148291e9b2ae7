#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace hone {

struct PlannedGraph;

// An update is a dynamic_update or a scatter: its result is its first operand with some elements
// changed. In place it writes those alone.

// Whether the node is an update that may work in place whatever else a plan decides, and why not:
// its operand is no constant and no output, and an input only if updates_of_input() has a value.
// A plan may still have its operand read too late, or make a view of it.
Status check_in_place(const Graph& graph, const Users& users, NodeId node);

// The update changes an input that is donated to its result, or to that of updates behind it:
// these, from the last on. If all of them work in place, the input's memory is the output's.
std::optional<std::vector<NodeId>> updates_of_input(const Graph& graph, NodeId update);

// The operand of an update whose elements are written.
ValueId updates_of(const Graph& graph, NodeId update);

// Updates that may work in place, too, when all groups are decided: one after another, from the
// last on, those that the caller wants. One whose operand is read behind it is left out, or
// for which that is not found out soon, and so are others of the same operand.
std::vector<NodeId> more_in_place(const PlannedGraph& graph, const Users& users,
                                  const std::function<bool(NodeId)>& wants);

}  // namespace hone
