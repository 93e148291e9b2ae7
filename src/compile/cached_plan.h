#pragma once

#include <string>

#include "cache/compile_cache.h"
#include "planner/planner.h"

namespace hone {

// The result of complete(), made once: found in the cache, or made and kept there. A plan that is
// found is checked like a plan that a person wrote; one that does not fit counts as absent. null:
// no cache. Cancelled plans are not kept, nor those of a Cost without a version.
Result<Plan> cached_plan(const Graph& graph, const Plan& partial, const Target& target,
                         const Cost& cost, CompileCache* cache, const PlannerOptions& options = {});

// The key in the cache: all that complete() looks at. `what` is made of that.
std::string plan_key(const Graph& graph, const Plan& partial, const Target& target,
                     const Cost& cost, const Heuristics& heuristics = {},
                     std::string_view what = "plan");

}  // namespace hone
