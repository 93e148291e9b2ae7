#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/pipeline.h"

namespace hone {

// How a training divides the nodes of its graphs into the stages of a pipeline. The first graph is
// a step, and has the plan that is given, or else one by price. Later ones, of evaluations and of
// batches of other sizes, have other nodes, so they get plans of their own. These have as many
// stages and micro-batches, or if that cannot be, as many as are best.
class TrainingStages {
 public:
  using Costs = std::vector<std::shared_ptr<const Cost>>;

  // `costs` are of the targets of the system. options.batch may name inputs that some graphs lack.
  TrainingStages(System system, Costs costs, PipelineOptions options,
                 std::optional<PipelinePlan> given = {})
      : system_(std::move(system)),
        costs_(std::move(costs)),
        options_(std::move(options)),
        given_(std::move(given)) {}

  // The plan of the next graph.
  Result<PipelinePlan> plan_for(const Graph& graph);
  bool has_begun() const { return first_.has_value(); }
  const System& system() const { return system_; }

 private:
  Result<PipelinePlan> chosen(const Graph& graph, PipelineOptions options) const;

  const System system_;
  const Costs costs_;
  const PipelineOptions options_;
  const std::optional<PipelinePlan> given_;
  std::optional<PipelinePlan> first_;
};

}  // namespace hone
