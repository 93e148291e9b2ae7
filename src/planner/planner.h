#pragma once

#include "base/progress.h"
#include "plan/plan.h"

namespace hone {

// Decides what the plan leaves open; what it says stays. Deterministic, and without measuring. The
// graph is prepared. An error says which entry of the plan does not fit. Once cancelled it stops
// before the next kernel.
Result<Plan> complete(const Graph& graph, Plan partial, const Target& target,
                      const CancelToken* cancel = nullptr);

}  // namespace hone
