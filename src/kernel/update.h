#pragma once

#include <span>

#include "ir/graph_view.h"

namespace hone {

// An update is a dynamic_update or a scatter: its result is its first operand with some elements
// changed. In place it writes those alone.
bool is_update(Opcode opcode);

// The operand of an update whose elements are written.
ValueId updates_of(GraphView graph, NodeId update);

// True if all that the nodes compute from the value is elementwise.
Status check_elementwise(GraphView graph, std::span<const NodeId> nodes, ValueId x);

}  // namespace hone
