#pragma once

#include <span>
#include <vector>

#include "grad/changes.h"
#include "ir/builder.h"

// Nodes with regions, seen by transpose().

namespace hone {

// The cotangents of the operands in `linear`. `operands`: absent where they are linear.
Result<std::vector<Value>> transposed_control(Builder& b, const Graph& graph, NodeId node,
                                              std::span<const Value> operands, const Mask& linear,
                                              std::span<const Value> cotangents);

}  // namespace hone
