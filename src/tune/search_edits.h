#pragma once

#include <optional>
#include <span>

#include "cost/cost.h"
#include "plan/plan_space.h"
#include "planner/heuristics.h"
#include "search/search.h"

namespace hone {

// The edits that lie along one sort of decision.
inline constexpr EditKind kEditsOfLayout[] = {EditKind::layout, EditKind::copy,
                                              EditKind::remove_copy};
inline constexpr EditKind kEditsOfGroups[] = {EditKind::join, EditKind::split, EditKind::view};

// The share of the plan's price that makes an edited plan worth a measurement.
inline constexpr double kCheaper = 0.995;

// Looks through the edits of a complete plan by the price of the whole, and completes the cheapest.
// Kernels of the plan keep its schedules; new ones have those of the planner. None: no edit makes
// the plan cheaper, or what is cheapest cannot be completed.
Result<std::optional<Plan>> search_edits(const Graph& graph, const Plan& plan, const Target& target,
                                         const Cost& cost, std::span<const EditKind> kinds,
                                         const Heuristics& heuristics,
                                         const SearchOptions& options);

}  // namespace hone
