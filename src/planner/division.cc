#include "planner/division.h"

#include <set>

#include "plan/planned.h"
#include "planner/schedules.h"

namespace hone {
namespace {

// The schedules of the kernels of a graph, or of a region and those in it.
Status divide(const Graph& source, const Plan& plan, Plan& whole, ScheduleChooser& chooser,
              std::set<uint64_t>& divided) {
  const PlannedGraph planned = HONE_TRY(hone::planned(plan, source));
  const Users users(*planned.graph);
  for (const Step& step : planned.steps) {
    if (!step.is_kernel) continue;
    const KernelBody body = body_of(planned, users, step);
    const uint64_t kernel = kernel_hash(body);
    const auto schedule = whole.schedule.find(kernel);
    if (schedule == whole.schedule.end() || !divided.insert(kernel).second) continue;
    schedule->second = HONE_TRY(chooser.divided(body, schedule->second));
  }
  for (const RegionRef& region : regions_of(*planned.graph)) {
    const auto inside = plan.region.find(region.key);
    if (inside != plan.region.end())
      HONE_TRY(divide(*region.graph, inside->second, whole, chooser, divided));
  }
  return {};
}

}  // namespace

Result<Plan> divided_among(int64_t threads, const Graph& graph, Plan plan, const Target& target,
                           const Cost& cost, const PlannerOptions& options) {
  if (target.gpu || plan.threads == threads) return plan;
  ScheduleChooser chooser(target, cost, threads, options);
  const Plan before = plan;
  std::set<uint64_t> divided;
  HONE_TRY(divide(graph, before, plan, chooser, divided));
  plan.threads = threads;
  return plan;
}

}  // namespace hone
