#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace hone {

// A complete plan that check_complete() accepts, any of them: every value of every decision comes
// up. The graph is prepared. Equal seeds give equal plans.
Plan random_plan(const Graph& graph, const Target& target, uint64_t seed);

}  // namespace hone
