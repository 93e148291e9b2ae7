#pragma once

#include "ir/graph.h"

namespace hone {

// Whether the node's result may lie in its operand's memory, if both are row-major, and why not: a
// reshape, a bitcast, or a slice of elements that lie side by side.
Status check_view(const Graph& graph, NodeId node);
// Where it then begins, in bytes.
Dim view_offset(const Graph& graph, NodeId node);

}  // namespace hone
