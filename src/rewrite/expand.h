#pragma once

#include <functional>

#include "ir/graph.h"

namespace hone {

// Spells out the composites that `which` chooses, in regions too.
Result<Graph> expand_composites(const Graph& graph, const std::function<bool(Opcode)>& which);

}  // namespace hone
