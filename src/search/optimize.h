#pragma once

#include "search/rewrite_search.h"

namespace hone {

struct OptimizeOptions {
  RewriteOptions rewrite = {};
  std::optional<int64_t> threads = std::nullopt;  // of plans; none: the target's cores
};

struct Optimized {
  Graph graph;  // the given one, if nothing is cheaper
  bool is_cheaper = false;
  // Its prices are those of graphs as they are prepared, weights folded; its graph has gone above.
  Rewritten found;
  size_t nodes = 0;    // of primitive ops, in the given graph
  size_t outside = 0;  // of those, nodes with ops of no rule
};

// A graph that computes the same and whose default plan is cheaper, with weights that are computed
// ahead. Inputs and outputs keep their order and names. Sizes are numbers.
Result<Optimized> optimize(const Graph& graph, std::span<const Rule> rules, const Target& target,
                           const Cost& cost, const OptimizeOptions& options = {});

}  // namespace hone
