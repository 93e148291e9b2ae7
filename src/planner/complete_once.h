#pragma once

#include "planner/planner.h"

namespace hone {

// complete() without a model of plans: one plan, by prices of kernels.
Result<Plan> complete_once(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                           const PlannerOptions& options);

}  // namespace hone
