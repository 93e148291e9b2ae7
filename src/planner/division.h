#pragma once

#include "planner/planner.h"

namespace hone {

// A complete plan as another number of threads carries it out. Kernels, layouts and places stay,
// and so does the order in which each sum adds. So results have the same bits for any number of
// threads. Loops over results are divided anew, by the prices of the Cost.
Result<Plan> divided_among(int64_t threads, const Graph& graph, Plan plan, const Target& target,
                           const Cost& cost, const PlannerOptions& options = {});

}  // namespace hone
