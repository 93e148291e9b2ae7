#pragma once

#include "base/progress.h"
#include "plan/plan.h"
#include "program/program.h"

namespace hone {

// Makes the program of a complete plan, and decides nothing. Every plan that check_complete()
// accepts lowers, except for graphs that exchange data with other devices; any other plan is
// refused with the reason of check_complete(). Once cancelled it stops before the next step.
Result<Program> lower(const Graph& graph, const Plan& plan, const Target& target,
                      const CancelToken* cancel = nullptr);

}  // namespace hone
