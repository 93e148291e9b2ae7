#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"
#include "rewrite/prepare.h"

namespace hone {

// Finds the plan of each graph; null: there is none. A plan goes to the graph whose hash it says,
// once that is prepared so. A plan without a hash goes to the graph of its name; if several have
// the name, to the first without a plan. One plan for one graph may leave out the hash and have any
// name. A plan for no graph, or for a graph that has another one, is an error. The plans outlive
// what is returned.
Result<std::vector<const PlacedPlan*>> assign_plans(std::span<const PlacedPlan> plans,
                                                    std::span<const Graph* const> graphs,
                                                    const PrepareOptions& prepared = {});

}  // namespace hone
