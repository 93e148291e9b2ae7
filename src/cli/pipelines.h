#pragma once

#include <optional>

#include "cli/arguments.h"
#include "ir/graph.h"
#include "search/pipeline.h"

namespace hone::cli {

class Console;

// `hone shard --pipeline`: chooses stages, micro-batches and schedule for the graph, tells them
// with what else was simulated, and writes the plan.
Status shard_pipeline(const Graph& graph, const Arguments& arguments, Console& console);

// `hone explain --pipeline`: the work and the messages of each stage, the order of each device, and
// what other orders of the same stages would cost.
Status tell_pipeline(const Graph& graph, const Arguments& arguments, Console& console);

// --pipeline of a command that chooses a pipeline itself: a plan, or how prices choose one.
struct PipelineRequest {
  std::optional<PipelinePlan> plan = {};
  PipelineOptions options = {};
  System system = {};
};
Result<PipelineRequest> pipeline_request(const Arguments& arguments, Console& console);

// The devices that --pipeline is for.
Result<int64_t> devices_of_pipeline(const Arguments& arguments);

}  // namespace hone::cli
