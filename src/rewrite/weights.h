#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace hone {

// A value that constants alone determine, and the nodes that compute it from them, in order.
struct ComputedWeight {
  ValueId value;
  std::vector<NodeId> nodes;      // the last one makes the value
  std::vector<NodeId> constants;  // that these read
};

// The weights that fold_weights() computes: what else reads, or is an output, but for broadcasts,
// which kernels have in their code; no loops, nothing that takes long, nothing that is many times
// as large as what it is made of.
std::vector<ComputedWeight> computed_weights(const Graph& graph);

// The graph with these constants in the place of its computed weights, in regions too.
using WeightValue = std::function<Result<Tensor>(const Graph& graph, const ComputedWeight& weight)>;
Result<Graph> replace_weights(const Graph& graph, const WeightValue& value);

}  // namespace hone
