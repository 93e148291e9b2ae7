#include "planner/planner.h"

#include <optional>

#include "cost/analytic.h"
#include "plan/collectives.h"
#include "planner/steps.h"

namespace hone {
namespace {

void choose_collectives(PlanningFrame& frame) {
  const Graph& graph = frame.graph();
  for (NodeId n : graph.nodes()) {
    if (!exchanges_data(graph.op(n))) continue;
    const Type type = graph.type(graph.operands(n)[0]);
    const int64_t bytes = type.is_static() ? type.static_bytes() : 0;
    frame.plan().collective.try_emplace(step_name(graph, n), default_schedule(graph.op(n), bytes));
  }
}

// A graph or a region, with the regions in it.
Status plan_frame(const Graph& source, Plan& plan, Plan& whole, const Choosers& choosers) {
  PlanningFrame frame = HONE_TRY(PlanningFrame::open(source, plan, whole, choosers));
  HONE_TRY(form_groups(frame));
  HONE_TRY(join_chains(frame));
  HONE_TRY(choose_layouts(frame));
  HONE_TRY(join_image_chains(frame));
  // The copies of weights that the layouts ask for: from here on, they are values of the graph.
  HONE_TRY(frame.make_copies());
  HONE_TRY(choose_schedules(frame));
  choose_collectives(frame);
  HONE_TRY(place_values(frame));
  for (const RegionRef& region : regions_of(frame.graph()))
    HONE_TRY(plan_frame(*region.graph, plan.region[region.key], whole, choosers));
  return {};
}

}  // namespace

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target) {
  return complete(graph, std::move(partial), target, AnalyticCost(target));
}

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                      const PlannerOptions& options) {
  HONE_TRY(check(partial, graph, target));
  Plan plan = partial;
  if (!graph.name().empty()) plan.graph = graph.name();
  plan.graph_hash = hash_without_weights(graph);
  plan.target = target.name;
  if (!plan.threads) plan.threads = target.cores;
  const Cost* const baseline = cost.baseline();
  ScheduleChooser all(target, baseline != nullptr ? *baseline : cost, *plan.threads, options);
  std::optional<ScheduleChooser> schedules;
  if (baseline != nullptr) schedules.emplace(target, cost, *plan.threads, options);
  HONE_TRY(plan_frame(graph, plan, plan, {all, schedules ? &*schedules : nullptr}));
  // The plan's lines may not fit the decisions made here: places that overlap in the order,
  // schedules of kernels that were not formed.
  Plan nothing;
  nothing.graph = partial.graph;
  if (partial != nothing) HONE_TRY(check_complete(plan, graph, target));
  return plan;
}

}  // namespace hone
