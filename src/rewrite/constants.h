#pragma once

#include <optional>

#include "ir/graph.h"
#include "tensor/tensor.h"

namespace hone {

// True if each element of the result is one of the only operand.
bool is_move(const Graph& graph, NodeId n);

// The tensor, if it is made of constants by a few ops.
Result<std::optional<Tensor>> made_of_constants(const Graph& graph, ValueId v);

// The attributes of an op, some of them changed.
Attrs changed_attrs(Op op, const Attrs& changes);

}  // namespace hone
