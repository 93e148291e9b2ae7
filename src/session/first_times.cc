#include "session/first_times.h"

#include "cost/gpu_cost.h"

namespace hone {

decltype(NativeOptions::revise) first_times_by(std::shared_ptr<const Cost> cost,
                                               FirstTimesOptions options) {
  return [cost = std::move(cost), options = std::move(options)](
             const Graph& graph, Plan plan, const Target& target) -> Result<Plan> {
    if (!graph.is_static()) return plan;  // a time is of one size
    const std::shared_ptr<const Cost> prices = cost != nullptr ? cost : analytic_cost(target);
    return with_first_times(graph, std::move(plan), target, *prices, options);
  };
}

}  // namespace hone
