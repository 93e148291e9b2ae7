#pragma once

#include "base/progress.h"
#include "plan/plan.h"
#include "program/program.h"

namespace hone {

// The consequence of a complete plan. Every plan that check_complete() accepts lowers, but for
// graphs that exchange data with other devices; others are refused with its reason. Nothing is
// decided here. Once cancelled it stops before the next step.
Result<Program> lower(const Graph& graph, const Plan& plan, const Target& target,
                      const CancelToken* cancel = nullptr);

}  // namespace hone
