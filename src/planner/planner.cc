#include "planner/planner.h"

#include <optional>

#include "cost/gpu_cost.h"
#include "cost/learned_cost.h"
#include "plan/collectives.h"
#include "planner/complete_once.h"
#include "planner/few_plans.h"
#include "planner/launches.h"
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

// All but the places of values, by these prices.
Result<PlanningFrame> decided(const Graph& source, Plan& plan, Plan& whole,
                              const Choosers& choosers) {
  PlanningFrame frame = HONE_TRY(PlanningFrame::open(source, plan, whole, choosers));
  HONE_TRY(form_groups(frame));
  HONE_TRY(join_chains(frame));
  HONE_TRY(choose_layouts(frame));
  HONE_TRY(join_image_chains(frame));
  // The copies of weights that the layouts ask for: from here on, they are values of the graph.
  HONE_TRY(frame.make_copies());
  HONE_TRY(choose_schedules(frame));
  choose_collectives(frame);
  return frame;
}

// The decisions of a frame and the schedules of the whole plan, which change together.
struct Decisions {
  Plan plan;
  decltype(Plan::schedule) schedules;

  Decisions(const Plan& plan, const Plan& whole) : plan(plan), schedules(whole.schedule) {}
  void restore(Plan& to, Plan& whole) const {
    to = plan;
    whole.schedule = schedules;
  }
};

// The usual prices decide, unless the other ones know surely cheaper groups and chains. Layouts are
// decided in either plan, by the usual prices unless the other ones are sure.
Result<PlanningFrame> surely_decided(const Graph& source, Plan& plan, Plan& whole,
                                     const Choosers& choosers) {
  if (choosers.sure == nullptr) return decided(source, plan, whole, choosers);
  const Decisions before(plan, whole);
  PlanningFrame usual = HONE_TRY(decided(source, plan, whole, choosers));
  const Decisions by_usual(plan, whole);
  const Launches usual_launches = launches_of(usual);
  before.restore(plan, whole);
  Result<PlanningFrame> other = decided(
      source, plan, whole, {*choosers.learned, choosers.usual, choosers.learned, choosers.sure});
  if (!other.ok() && other.error().code() == ErrorCode::interrupted) return other;
  // Groups that do not fit what the plan says are no choice.
  if (other.ok() && launches_of(*other).sure_gain(usual_launches, *choosers.sure)) return other;
  by_usual.restore(plan, whole);
  return usual;
}

// A graph or a region, with the regions in it.
Status plan_frame(const Graph& source, Plan& plan, Plan& whole, const Choosers& choosers) {
  PlanningFrame frame = HONE_TRY(surely_decided(source, plan, whole, choosers));
  HONE_TRY(place_values(frame));
  for (const RegionRef& region : regions_of(frame.graph()))
    HONE_TRY(plan_frame(*region.graph, plan.region[region.key], whole, choosers));
  return {};
}

}  // namespace

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target) {
  return complete(graph, std::move(partial), target, *analytic_cost(target));
}

namespace {

// The model of plans that ranks, where all is open; null: one plan is made.
const PlanModel* ranking(const Graph& graph, const Plan& partial, const Target& target,
                         const Cost& cost) {
  const LearnedCost* const learned = cost.learned();
  // A Cost that wraps a learned one has other prices than the model has learned by.
  if (learned == nullptr || learned != &cost || learned->plans() == nullptr) return nullptr;
  if (target.gpu || !graph.is_static()) return nullptr;
  const PlanModel& model = *learned->plans();
  Plan but_threads = partial;
  but_threads.threads.reset();
  but_threads.graph = Plan().graph;
  const bool is_open = but_threads == Plan();
  const int64_t threads = partial.threads.value_or(target.cores);
  return is_open && model.gains() && model.threads == threads ? &model : nullptr;
}

}  // namespace

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                      const PlannerOptions& options) {
  if (const PlanModel* const model = ranking(graph, partial, target, cost))
    return best_of_few(graph, partial, target, cost, *model, options);
  return complete_once(graph, std::move(partial), target, cost, options);
}

Result<Plan> complete_once(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                           const PlannerOptions& options) {
  HONE_TRY(check(partial, graph, target));
  Plan plan = partial;
  if (!graph.name().empty()) plan.graph = graph.name();
  plan.graph_hash = hash_without_weights(graph);
  plan.target = target.name;
  if (!plan.threads) plan.threads = target.cores;
  ScheduleChooser chooser(target, cost, *plan.threads, options);
  ScheduleChooser* const learned = cost.baseline() != nullptr ? &chooser : nullptr;
  std::optional<AskedCost> sure;
  if (learned != nullptr && cost.sureness()) sure.emplace(cost, *plan.threads);
  HONE_TRY(plan_frame(graph, plan, plan,
                      {chooser.usual(), chooser.usual(), learned, sure ? &*sure : nullptr}));
  // The plan's lines may not fit the decisions made here: places that overlap in the order,
  // schedules of kernels that were not formed.
  Plan nothing;
  nothing.graph = partial.graph;
  if (partial != nothing) HONE_TRY(check_complete(plan, graph, target));
  return plan;
}

}  // namespace hone
