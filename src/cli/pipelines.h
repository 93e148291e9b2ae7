#pragma once

#include "cli/arguments.h"
#include "ir/graph.h"

namespace hone::cli {

class Console;

// `hone shard --pipeline`: chooses stages, micro-batches and schedule for the graph, tells them
// with what else was simulated, and writes the plan.
Status shard_pipeline(const Graph& graph, const Arguments& arguments, Console& console);

// `hone explain --pipeline`: the work and the messages of each stage, the order of each device, and
// what other orders of the same stages would cost.
Status tell_pipeline(const Graph& graph, const Arguments& arguments, Console& console);

}  // namespace hone::cli
