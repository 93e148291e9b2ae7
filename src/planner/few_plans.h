#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/plan_model.h"
#include "planner/planner.h"

namespace hone {

// The heuristics that decide about groups, chains, layouts, order and places, and not about the
// schedule of a kernel: plans with and without them share schedules and prices of kernels.
std::span<bool Heuristics::* const> structure_heuristics();

// Other ways to plan, each without one or two of these heuristics. Such a plan takes little time,
// and prices alone are often wrong about which one is faster.
std::vector<Heuristics> quick_variants(const Heuristics& heuristics);

// The ones that may plan this graph in another way: planning takes time. A plan says whether it has
// another order (order.h).
std::vector<Heuristics> variants_for(const Graph& graph, const Heuristics& heuristics);

// Plans that differ, `most` of them at most. The first is that of complete() by the Cost without
// its model of plans. Then come the one by its baseline, and one for each variant that can be
// planned. They share what they find out about kernels. Errors are those of the first.
Result<std::vector<Plan>> few_plans(const Graph& graph, const Plan& partial, const Target& target,
                                    const Cost& cost, std::span<const Heuristics> variants,
                                    const PlannerOptions& options = {}, size_t most = SIZE_MAX);

// Plans that cost more than the first one times this by the sum of prices are not asked about.
inline constexpr double kWorthAsking = 1.2;

// The one of few_plans() by quick_variants() that the model takes.
Result<Plan> best_of_few(const Graph& graph, const Plan& partial, const Target& target,
                         const Cost& cost, const PlanModel& model, const PlannerOptions& options);
// The one of these, of which the first is the usual one. A plan that cannot be described is not
// taken; if the first cannot, it stays.
Result<Plan> best_of_these(const Graph& graph, std::vector<Plan> plans, const Target& target,
                           const Cost& cost, const PlanModel& model,
                           const CancelToken* cancel = nullptr);
// The graph that a model is asked about: plan_graph() of the plan's program.
Result<PlanGraph> described_plan(const Graph& graph, const Plan& plan, const Target& target,
                                 const Cost& cost, const CancelToken* cancel = nullptr);

}  // namespace hone
