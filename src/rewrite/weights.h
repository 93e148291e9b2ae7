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

// The weights that fold_weights() computes: values that other nodes read or that are outputs.
// Broadcasts are left out, because kernels have them in their code. So are loops, values that take
// long, and values many times as large as the constants that they are made of.
std::vector<ComputedWeight> computed_weights(const Graph& graph);

// The graph with these constants in the place of its computed weights, in regions too.
using WeightValue = std::function<Result<Tensor>(const Graph& graph, const ComputedWeight& weight)>;
Result<Graph> replace_weights(const Graph& graph, const WeightValue& value);

}  // namespace hone
