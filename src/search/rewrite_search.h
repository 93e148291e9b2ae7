#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "rules/extract.h"
#include "rules/rewrites.h"
#include "rules/saturate.h"
#include "search/graph_price.h"

// Looks for a cheaper graph that computes the same, by rules, for any price of graphs.

namespace hone {

struct RewriteOptions {
  double seconds = 60;       // of the search; what it has begun it ends
  double relaxation = 1.05;  // a graph is rewritten further if it costs at most this times the
                             // least
  size_t queue = 64;         // graphs that wait for that
  size_t places = 32;        // of a rule in a graph, tried alone
  SaturateLimits egraph = {};
  int32_t assumed_decades = 0;  // of the graph's inputs (known_ranges.h)
  const CancelToken* cancel = nullptr;
  Progress* progress = nullptr;                     // counts graphs that were priced
  std::function<void(std::string_view)> told = {};  // a line for what people may want to know
};

enum class RewriteEnd : uint8_t { done, seconds, cancelled };
std::string_view name(RewriteEnd end);

struct Rewritten {
  Graph graph;                    // of primitive ops; rewritable(), if nothing is cheaper
  double before = 0, after = 0;   // prices
  std::vector<Rewrite> rewrites;  // that lead to it
  size_t priced = 0;              // graphs
  RewriteEnd end = RewriteEnd::done;
  Saturated egraph;
};

// Seconds of a rewritable graph. An error: this one cannot be priced, and is left out.
using PriceOfGraph = std::function<Result<double>(const Graph& graph)>;

// Two ways beside each other. An e-graph takes all rules at once; what is cheap in it by each of
// `nodes` is priced. And graphs are rewritten rule by rule, the cheapest first: at all places of a
// rule, at all with the same sizes, and at single ones. Rules are applied where they hold of
// floats. Never dearer than the given graph; cancelled or out of time: the best so far. Errors are
// those of pricing the given graph.
Result<Rewritten> search_rewrites(const Graph& graph, std::span<const Rule> rules,
                                  const PriceOfGraph& price, std::span<const NodeCost> nodes,
                                  const RewriteOptions& options = {});

// Nodes that compute something and whose ops no left side of a rule has.
size_t nodes_outside(const Graph& graph, std::span<const Rule> rules);

}  // namespace hone
