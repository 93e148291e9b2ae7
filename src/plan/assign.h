#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"
#include "rewrite/prepare.h"

namespace hone {

// The plan of each graph, null where there is none. A plan goes to the graph whose hash it says,
// once that is prepared so. One without a hash, to the graph of its name; of several, to the first
// that has none yet. One plan for one graph may leave out the hash and have any name. It is an
// error if a plan is for no graph, or for one that has another. The plans outlive what is returned.
Result<std::vector<const PlacedPlan*>> assign_plans(std::span<const PlacedPlan> plans,
                                                    std::span<const Graph* const> graphs,
                                                    const PrepareOptions& prepared = {});

}  // namespace hone
