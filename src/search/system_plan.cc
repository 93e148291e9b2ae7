#include "search/system_plan.h"

#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "plan/rewritten.h"
#include "planner/planner.h"
#include "rewrite/overlap.h"
#include "rules/rewrites.h"

namespace hone {
namespace {

// A product with its exchange, as a graph of its own. Constants stay: kernels pack them.
Result<Graph> alone(const Graph& graph, ValueId result) {
  const NodeId last = graph.producer(result);
  std::vector<NodeId> nodes = {last};
  for (const ValueId v : graph.operands(last)) {
    const NodeId maker = graph.producer(v);
    const bool is_part = is_dot(graph.opcode(last)) ? graph.opcode(maker) == Opcode::all_gather
                                                    : is_dot(graph.opcode(maker));
    if (is_part) nodes.push_back(maker);
  }
  std::ranges::sort(nodes);
  Graph part("product");
  std::vector<ValueId> made(graph.value_count());
  std::vector<bool> is_made(graph.value_count());
  for (const NodeId n : nodes) {
    std::vector<ValueId> operands;
    for (const ValueId v : graph.operands(n)) {
      if (!is_made[v.index]) {
        const NodeId maker = graph.producer(v);
        made[v.index] = is_constant(graph.opcode(maker))
                            ? part.add_constant(graph.constant(maker), graph.name(v))
                            : part.add_parameter(graph.type(v), graph.name(v));
        is_made[v.index] = true;
      }
      operands.push_back(made[v.index]);
    }
    const NodeId copied = HONE_TRY(part.append(graph.op(n), operands));
    made[graph.result(n).index] = part.result(copied);
    is_made[graph.result(n).index] = true;
    part.set_name(part.result(copied), graph.name(graph.result(n)));
  }
  part.set_outputs({made[result.index]});
  return part;
}

class SystemPlanner {
 public:
  SystemPlanner(const System& system, std::span<const std::shared_ptr<const Cost>> costs,
                const SystemPlanOptions& options)
      : system_(system), costs_(costs), options_(options) {}

  Result<SystemPlans> plans(const Graph& given) {
    SystemPlans whole = HONE_TRY(planned(given, {}, options_.said));
    whole.undivided = whole.seconds;
    const bool may_divide = std::ranges::all_of(options_.said, [](const Plan& plan) {
      Plan rest = plan;
      rest.threads.reset();
      return rest == Plan();
    });
    if (!options_.overlaps || !may_divide) return whole;
    std::vector<ChosenOverlap> overlaps;
    std::vector<Rewrite> rewrites;
    const Graph graph = HONE_TRY(rewritable(given));
    for (const ValueId v : overlap_candidates(graph)) {
      // One that was divided before may have been part of this product.
      overlaps.push_back(HONE_TRY(chosen(graph, v)));
      const ChosenOverlap& best = overlaps.back();
      if (best.overlap.empty()) continue;
      rewrites.push_back({best.overlap, {best.value}});
      if (!replay(graph, rewrites, {}).ok()) {
        rewrites.pop_back();
        overlaps.back().overlap.clear();
      }
    }
    if (!rewrites.empty()) {
      SystemPlans divided = HONE_TRY(planned(given, rewrites, options_.said));
      divided.undivided = whole.undivided;
      if (divided.seconds <= whole.seconds)
        whole = std::move(divided);
      else
        for (ChosenOverlap& one : overlaps) one.overlap.clear();
    }
    whole.overlaps = std::move(overlaps);
    return whole;
  }

 private:
  Result<SystemPlans> planned(const Graph& given, const std::vector<Rewrite>& rewrites,
                              const std::vector<Plan>& said) const {
    SystemPlans made;
    for (size_t i = 0; i < system_.targets.size(); ++i) {
      Plan partial = said.empty() ? Plan() : said[i];
      if (has_rewrites(partial)) return bad_input("the plan of a system's target has rewrites");
      Plan rewriting;
      rewriting.graph = given.name();
      rewriting.rewrite = rewrites;
      made.graphs.push_back(HONE_TRY(prepare(
          HONE_TRY(rewritten(given, rewriting, std::span<const Rule>())), options_.prepare)));
      const Graph& graph = made.graphs.back();
      HONE_TRY(add_best_schedules(graph, system_, partial));
      made.plans.push_back(
          HONE_TRY(complete(graph, std::move(partial), system_.targets[i], *costs_[i],
                            {.cancel = options_.cancel, .heuristics = options_.heuristics})));
    }
    made.seconds = seconds_of(HONE_TRY(timeline_of(made, system_, costs_)).timeline.end());
    for (Plan& plan : made.plans) plan.rewrite = rewrites;
    return made;
  }

  Result<ChosenOverlap> chosen(const Graph& graph, ValueId v) const {
    const Graph part = HONE_TRY(alone(graph, v));
    ChosenOverlap best = {std::string(graph.name(v)), "", 0, 0};
    std::vector<Plan> said;
    for (const Plan& plan : options_.said) {
      said.emplace_back().threads = plan.threads;
    }
    best.before = best.after = HONE_TRY(planned(part, {}, said)).seconds;
    for (const Overlap& overlap : overlaps_of(graph, v)) {
      const SystemPlans divided = HONE_TRY(planned(part, {{name(overlap), {best.value}}}, said));
      if (divided.seconds >= best.after) continue;
      best.after = divided.seconds;
      best.overlap = name(overlap);
    }
    if (best.after > best.before * (1 - kLeastGain)) best.overlap.clear();
    return best;
  }

  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const SystemPlanOptions& options_;
};

}  // namespace

Result<SystemTimeline> timeline_of(const SystemPlans& plans, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs, bool merge) {
  std::vector<TargetPlan> each;
  for (size_t i = 0; i < plans.plans.size(); ++i)
    each.push_back({&plans.graphs[i], &plans.plans[i], costs[i].get(), nullptr});
  return system_timeline(system, each, merge);
}

Result<SystemPlans> plan_for_system(const Graph& given, const System& system,
                                    std::span<const std::shared_ptr<const Cost>> costs,
                                    const SystemPlanOptions& options) {
  HONE_CHECK(costs.size() == system.targets.size(), "{} prices, {} targets", costs.size(),
             system.targets.size());
  HONE_CHECK(options.said.empty() || options.said.size() == costs.size(), "{} plans, {} targets",
             options.said.size(), costs.size());
  return SystemPlanner(system, costs, options).plans(given);
}

}  // namespace hone
