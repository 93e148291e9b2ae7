#pragma once

#include <string>

#include "base/progress.h"
#include "cache/compile_cache.h"
#include "plan/plan.h"

namespace hone {

// What complete() gives, made once: found in the cache, or made and kept there. What is found is
// checked like a plan that a person wrote; one that does not fit counts as absent. null: no cache.
// What is cancelled while it is planned is not kept.
Result<Plan> cached_plan(const Graph& graph, const Plan& partial, const Target& target,
                         CompileCache* cache, const CancelToken* cancel = nullptr);

// The key in the cache: all that complete() looks at.
std::string plan_key(const Graph& graph, const Plan& partial, const Target& target);

}  // namespace hone
