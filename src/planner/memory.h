#pragma once

#include <map>
#include <string>

#include "alloc/plan_memory.h"
#include "plan/planned.h"

namespace hone {

// The temporaries of a frame of static shapes whose steps have an order, as buffers: moments are
// places in the order. Buffers are in the order of `lives`; those that the plan places stay there.
MemoryProblem memory_problem(const PlannedGraph& frame, const std::vector<Lifetime>& lives,
                             const std::map<std::string, int64_t>& offsets);

// How much memory the temporaries of a graph take under a complete plan, those of its regions
// aside, and what they need at the least, wherever they lie. Nothing where sizes are open.
Result<std::optional<MemoryBounds>> memory_of(const Graph& graph, const Plan& plan);

}  // namespace hone
