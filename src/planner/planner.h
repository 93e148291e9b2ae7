#pragma once

#include "base/progress.h"
#include "cost/kernel_store.h"
#include "plan/plan.h"
#include "planner/heuristics.h"

namespace hone {

struct PlannerOptions {
  const CancelToken* cancel = nullptr;
  Progress* progress = nullptr;  // counts kernels that were scheduled; started by the caller
  Heuristics heuristics = {};
  // The facts about kernels from earlier plans for the same target, with the same heuristics;
  // this one adds to it. Null: it starts with nothing.
  KernelStore* known = nullptr;
};

// Decides what the plan leaves open, by the prices of a Cost; what it says stays. Deterministic
// where the Cost is. The graph is prepared. An error says which entry of the plan does not fit.
// Once cancelled it stops before the next kernel.
Result<Plan> complete(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                      const PlannerOptions& options = {});
// Chooses by the analytic price with its default coefficients.
Result<Plan> complete(const Graph& graph, Plan partial, const Target& target);

}  // namespace hone
