#pragma once

#include <string>
#include <vector>

#include "session/sharding.h"

namespace hone {

// How a training divides the values of its graphs among devices. The first graph is a step, and
// follows the request. Later ones, of evaluations and of batches with other sizes, have other
// values. So the tensors that both take lie alike, and all else is chosen anew.
class TrainingShards {
 public:
  explicit TrainingShards(ShardRequest request) : request_(std::move(request)) {}

  // The request that holds for a graph.
  Result<ShardRequest> request_for(const Graph& graph) const;
  // The first graph, as it was divided; later ones change nothing.
  void take(const Graph& graph, const ShardedModel& made);
  // The plan of the first graph as text.
  const std::string& plan() const { return plan_; }

 private:
  const ShardRequest request_;
  std::string plan_;
  std::vector<std::pair<std::string, Type>> inputs_;  // of the first graph
};

}  // namespace hone
