#pragma once

#include <functional>

#include "ir/graph.h"

namespace hone {

// Spells out the composites that `which` chooses, in regions too.
Result<Graph> expand_composites(const Graph& graph, const std::function<bool(Opcode)>& which);

// The expansion of one application as a graph; its inputs are the operands that are present.
// `form` is another spelling than the op's own.
Result<Graph> expansion(Op op, std::span<const Type> operands, ExpandFn form = nullptr);

}  // namespace hone
