#pragma once

#include <functional>

#include "ir/graph.h"
#include "lab/tpu/hlo.h"

namespace hone::tpu {

// The graph as a module of XLA with one computation. Nodes are in order, by their opcodes there, or
// by their own names where XLA has none. Several outputs are a tuple. Regions are left out.
// `layout` tells a value's dims from minor to major, as far as they are a permutation.
HloModule hlo_of(const Graph& graph, const std::function<Integers(ValueId)>& layout);

}  // namespace hone::tpu
