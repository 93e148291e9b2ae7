#pragma once

#include <vector>

#include "ir/graph.h"

// Tells which values change by small amounts when some inputs do. All three transformations ask it,
// about a graph's inputs or about the tangents among them.

namespace hone {

// Per input, output, value, operand or result.
using Mask = std::vector<bool>;

// Per value.
Mask changing_values(const Graph& graph, const Mask& inputs);
Mask changing_outputs(const Graph& graph, const Mask& inputs);

// How changes of operands go through a node with regions. A state of a loop that changes in one
// round has changed in all.
struct ControlChanges {
  Mask operands;
  Mask results;
};
ControlChanges control_changes(const Graph& graph, NodeId node, Mask operands);

// True if some operand changes, which `values` says.
Mask changing_operands(const Graph& graph, NodeId node, const Mask& values);

bool any(const Mask& mask);
size_t count(const Mask& mask);

}  // namespace hone
