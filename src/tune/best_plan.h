#pragma once

#include <optional>

#include "log/log.h"
#include "plan/plan.h"

namespace hone {

// A plan that was surely faster than the default when it was confirmed.
struct KnownPlan {
  Plan plan;
  double gain = 1, low = 1, high = 1;  // over the default, and its interval
};

// The best plan of the log for a prepared graph, on this processor with this number of threads.
// Weights do not count. A log that cannot be read, or has a text that is not a plan, knows nothing.
std::optional<KnownPlan> best_plan(const Log& log, const Graph& graph, const Target& target,
                                   int64_t threads);

}  // namespace hone
