#include "planner/few_plans.h"

#include <algorithm>
#include <array>

#include "cost/plan_graph.h"
#include "ir/op_facts.h"
#include "plan/planned.h"
#include "planner/complete_once.h"
#include "planner/order.h"
#include "program/lower/lower.h"

namespace hone {
namespace {

constexpr bool Heuristics::* kStructure[] = {&Heuristics::groups,
                                             &Heuristics::chains,
                                             &Heuristics::layouts,
                                             &Heuristics::image_chains,
                                             &Heuristics::memory,
                                             &Heuristics::graph_order,
                                             &Heuristics::fuse_elementwise,
                                             &Heuristics::fuse_rows,
                                             &Heuristics::fuse_epilogues,
                                             &Heuristics::fuse_operands,
                                             &Heuristics::repeat_cheap,
                                             &Heuristics::repeat_rows,
                                             &Heuristics::views,
                                             &Heuristics::concat_views,
                                             &Heuristics::depthwise_chains,
                                             &Heuristics::pool_chains,
                                             &Heuristics::in_place,
                                             &Heuristics::blocked_images,
                                             &Heuristics::last_images,
                                             &Heuristics::weight_layouts,
                                             &Heuristics::weight_copies};

// Without all chains, with concats as kernels, and in another order: more plans would take longer
// than they may gain.
constexpr std::array<bool Heuristics::*, 2> kQuick[] = {
    {&Heuristics::chains, &Heuristics::image_chains},
    {&Heuristics::concat_views, &Heuristics::concat_views},
    {&Heuristics::graph_order, &Heuristics::graph_order}};

// True if a node of the graph or of a region is such a one.
template <typename Is>
bool has_node(const Graph& graph, const Is& is) {
  for (NodeId n : graph.nodes())
    if (is(graph, n)) return true;
  const auto regions = regions_of(graph);
  return std::ranges::any_of(regions,
                             [&](const RegionRef& each) { return has_node(*each.graph, is); });
}

bool is_concat(const Graph& graph, NodeId n) { return joins_operands(graph.opcode(n)); }

// The steps of the plan in another order, and places for it; all else stays.
void open_order(Plan& plan) {
  plan.order.clear();
  plan.offset.clear();
  for (auto& [name, region] : plan.region) open_order(region);
}
Heuristics of_order_alone(Heuristics heuristics) {
  for (bool Heuristics::* flag : {&Heuristics::groups, &Heuristics::chains, &Heuristics::layouts,
                                  &Heuristics::image_chains, &Heuristics::in_place})
    heuristics.*flag = false;
  return heuristics;
}

bool differs_in_order_alone(Heuristics one, const Heuristics& other) {
  if (one.graph_order == other.graph_order) return false;
  one.graph_order = other.graph_order;
  return one == other;
}

void add_new(Plan plan, std::vector<Plan>& plans) {
  if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(std::move(plan));
}

}  // namespace

std::span<bool Heuristics::* const> structure_heuristics() { return kStructure; }

std::vector<Heuristics> quick_variants(const Heuristics& heuristics) {
  std::vector<Heuristics> variants;
  for (const auto& flags : kQuick) {
    Heuristics without = heuristics;
    for (bool Heuristics::* flag : flags) without.*flag = false;
    if (without != heuristics) variants.push_back(without);
  }
  return variants;
}

std::vector<Heuristics> variants_for(const Graph& graph, const Heuristics& heuristics) {
  std::vector<Heuristics> variants = quick_variants(heuristics);
  const auto leave_out = [&](bool Heuristics::* flag) {
    std::erase_if(variants, [&](const Heuristics& each) { return each.*flag != heuristics.*flag; });
  };
  if (!has_node(graph, is_concat)) leave_out(&Heuristics::concat_views);
  return variants;
}

Result<std::vector<Plan>> few_plans(const Graph& graph, const Plan& partial, const Target& target,
                                    const Cost& cost, std::span<const Heuristics> variants,
                                    const PlannerOptions& options, size_t most) {
  KernelStore own;
  PlannerOptions shared = options;
  if (shared.known == nullptr) shared.known = &own;
  std::vector<Plan> plans = {HONE_TRY(complete_once(graph, partial, target, cost, shared))};
  const auto add = [&](const Cost& by, const Heuristics& heuristics, const Plan& from) -> Status {
    shared.heuristics = heuristics;
    Result<Plan> plan = complete_once(graph, from, target, by, shared);
    if (plan.ok())
      add_new(*std::move(plan), plans);
    else if (plan.error().code() == ErrorCode::interrupted)
      return std::move(plan).error();
    return {};
  };
  const Cost* const baseline = cost.baseline();
  const bool is_order_open =
      partial.order.empty() && partial.offset.empty() && partial.region.empty();
  if (baseline != nullptr) HONE_TRY(add(*baseline, options.heuristics, partial));
  for (const Heuristics& variant : variants) {
    if (plans.size() >= most) break;
    if (differs_in_order_alone(variant, options.heuristics)) {
      if (!is_order_open || !has_other_order(graph, plans[0])) continue;
      Plan reordered = plans[0];
      open_order(reordered);
      HONE_TRY(add(baseline != nullptr ? *baseline : cost, of_order_alone(variant), reordered));
    } else {
      HONE_TRY(add(cost, variant, partial));
    }
  }
  return plans;
}

Result<Plan> best_of_few(const Graph& graph, const Plan& partial, const Target& target,
                         const Cost& cost, const PlanModel& model, const PlannerOptions& options) {
  std::vector<Plan> plans = HONE_TRY(
      few_plans(graph, partial, target, cost, variants_for(graph, options.heuristics), options));
  return best_of_these(graph, std::move(plans), target, cost, model, options.cancel);
}

Result<Plan> best_of_these(const Graph& graph, std::vector<Plan> plans, const Target& target,
                           const Cost& cost, const PlanModel& model, const CancelToken* cancel) {
  std::vector<PlanGraph> described;
  std::vector<size_t> plan_of;
  for (size_t i = 0; i < plans.size() && (i == 0 || !described.empty()); ++i) {
    Result<PlanGraph> one = described_plan(graph, plans[i], target, cost, cancel);
    if (!one.ok() && one.error().code() == ErrorCode::interrupted) return std::move(one).error();
    if (!one.ok() || (i > 0 && one->seconds > kWorthAsking * described[0].seconds)) continue;
    described.push_back(*std::move(one));
    plan_of.push_back(i);
  }
  const size_t best = described.empty() ? 0 : plan_of[best_of(model, described)];
  return std::move(plans[best]);
}

Result<PlanGraph> described_plan(const Graph& graph, const Plan& plan, const Target& target,
                                 const Cost& cost, const CancelToken* cancel) {
  return plan_graph(HONE_TRY(lower(graph, plan, target, cancel)), target, cost);
}

}  // namespace hone
