#pragma once

#include "ir/graph.h"

namespace hone {

// Whether the node's result may lie in its operand's memory, if both are row-major, and why not: a
// reshape, a bitcast, or a slice of elements that lie side by side. What it lies in must have
// memory, and outputs of the graph have memory of their own.
Status check_view(const Graph& graph, const Users& users, NodeId node);
// Whether the value is a constant of one element, which is a number in the code of kernels.
bool is_number(const Graph& graph, ValueId value);
// Where it then begins, in bytes.
Dim view_offset(const Graph& graph, NodeId node);

}  // namespace hone
