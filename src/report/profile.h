#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "compile/native_engine.h"
#include "cost/cost.h"
#include "plan/plan.h"
#include "runtime/executable.h"

// Where a compiled model's time goes.

namespace hone {

// A table of the `most` slowest kernels: the first command of the plan that launches the kernel,
// and how often a run does; the type that it writes; algorithm and key of its schedule; the time in
// a run, which counts the fastest launch of each command, and its share of all; its price by the
// Cost; and operations per second, also as a share of the f32 peak that the target states for the
// plan's threads. `times` are of `runs` runs of the prepared graph, for these sizes, under the
// complete plan.
Result<std::string> profile_table(std::span<const CommandTime> times, int64_t runs,
                                  const Graph& graph, const Plan& plan, const Target& target,
                                  const Cost& cost, size_t most, const Bindings& sizes = {});

// The same for `runs` runs of a model on an engine that keeps code: the table of its only graph, or
// a table of its segments and those of the slowest few.
Result<std::string> profile_text(const NativeEngine& engine, int64_t runs, const Target& target,
                                 size_t most);

}  // namespace hone
