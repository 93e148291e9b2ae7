#pragma once

#include "plan/rewritten.h"
#include "search/rewrite_search.h"

namespace hone {

// Prices of rewritten graphs, held against what was measured, are wrong by 2.3 % (one standard
// deviation, docs/optimize.md): a graph that is 1.5 % cheaper is then at worst about 1 % slower.
constexpr double kPriceMargin = 0.025;

struct OptimizeOptions {
  RewriteOptions rewrite = {};
  double margin = kPriceMargin;  // what is cheaper by a smaller part of the price is not taken
  std::optional<int64_t> threads = std::nullopt;  // of plans; none: the target's cores
};

struct Optimized {
  Graph graph;              // rewritten(given, plan, rules): the given one, if nothing is cheaper
  bool is_cheaper = false;  // by the margin
  Plan plan;                // the rewrites, those of regions too, and nothing else
  double before = 0, after = 0;  // prices of graphs as they are prepared, weights folded
  double least = 0;              // of what was found, taken or not
  size_t priced = 0;             // graphs
  RewriteEnd end = RewriteEnd::done;
  Saturated egraph;    // of the graph itself
  size_t nodes = 0;    // of primitive ops, in the given graph and its regions
  size_t outside = 0;  // of those, nodes with ops of no rule
};

// A graph that computes the same and whose default plan is cheaper, with weights that are computed
// ahead. Inputs and outputs keep their order and names. Sizes are numbers. Each region is rewritten
// as a graph of its own, after the graph around it.
Result<Optimized> optimize(const Graph& graph, std::span<const Rule> rules, const Target& target,
                           const Cost& cost, const OptimizeOptions& options = {});

}  // namespace hone
