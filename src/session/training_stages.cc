#include "session/training_stages.h"

#include <algorithm>

namespace hone {

Result<PipelinePlan> TrainingStages::chosen(const Graph& graph, PipelineOptions options) const {
  std::erase_if(options.batch, [&](const std::string& name) {
    return std::ranges::none_of(graph.inputs(), [&](ValueId input) {
      return graph.name(input) == name && graph.type(input).rank() > 0;
    });
  });
  return HONE_TRY(choose_pipeline(graph, system_, costs_, options)).plan;
}

Result<PipelinePlan> TrainingStages::plan_for(const Graph& graph) {
  if (!first_) {
    first_ = given_ ? *given_ : HONE_TRY(chosen(graph, options_));
    return *first_;
  }
  PipelineOptions options = options_;
  options.stages = static_cast<int32_t>(first_->stages.size());
  options.micro_batches = first_->micro_batches;
  options.schedule.reset();
  Result<PipelinePlan> alike = chosen(graph, options);
  if (alike.ok() || alike.error().code() == ErrorCode::interrupted) return alike;
  options.stages = 0;
  options.micro_batches = 1;
  return chosen(graph, options);
}

}  // namespace hone
