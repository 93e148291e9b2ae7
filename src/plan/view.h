#pragma once

#include "ir/graph_view.h"
#include "kernel/layout.h"

namespace hone {

// Tells whether the node is a view, or why not. A view is not computed: its result is memory that
// others have or leave. A reshape, a bitcast or a slice of elements that lie side by side lies in
// its operand's memory, which must have some. Outputs of the graph have memory of their own. The
// operands of a concat lie side by side in its result: steps must write them, for nothing else.
Status check_view(GraphView graph, UsersView users, NodeId node);
// Accepts a slice whose elements, or a concat whose operands, lie side by side in memory of this
// layout and fill whole blocks of it. They have the layout, too.
Status check_side_by_side(GraphView graph, NodeId node, const Layout& layout);
// Both checks, for memory that is row-major.
Status check_row_major_view(GraphView graph, UsersView users, NodeId node);
// True if such a view has the dims, and so the layout, of what it shares memory with.
bool keeps_layout(GraphView graph, NodeId node);
// True if the value is a constant of one element, which is a number in the code of kernels.
bool is_number(GraphView graph, ValueId value);
// Where it then begins in its operand, which has this layout, in bytes.
Dim view_offset(GraphView graph, NodeId node, const Layout& layout);
// Where the operand of a concat then begins in the result, whatever layout both have.
Dim part_offset(GraphView graph, NodeId concat, size_t operand);

}  // namespace hone
