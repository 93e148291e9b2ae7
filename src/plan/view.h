#pragma once

#include "ir/graph_view.h"

namespace hone {

// Whether the node need not be computed, since its result is memory that others have or leave, and
// why not. A reshape, a bitcast or a slice of elements that lie side by side lies in its operand's
// memory, which must have some; outputs of the graph have memory of their own. The operands of a
// concat along the first dim that is longer than 1 lie in its result: steps must write them, for
// nothing else. All are row-major then.
Status check_view(GraphView graph, UsersView users, NodeId node);
// Whether the value is a constant of one element, which is a number in the code of kernels.
bool is_number(GraphView graph, ValueId value);
// Where it then begins in its operand, in bytes.
Dim view_offset(GraphView graph, NodeId node);
// Where the operand of a concat then begins in the result.
Dim part_offset(GraphView graph, NodeId concat, size_t operand);

}  // namespace hone
