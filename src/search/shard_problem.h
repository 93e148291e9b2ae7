#pragma once

#include <functional>
#include <vector>

#include "assign/problem.h"
#include "base/progress.h"
#include "search/shard_prices.h"

// The choice of a division for each node as a problem of assignment.

namespace hone {

struct ShardProblem {
  // Nodes are those of the graph, by their numbers, and behind them its outputs. Costs are in
  // picoseconds, and usages in bytes. A node lives as long as its results are needed; moments are
  // the nodes of the graph. Behind the outputs may stand the copies that nodes make of operands
  // that are divided otherwise.
  AssignProblem problem = {};
  // The options of each node; of an input or an output, one result.
  std::vector<std::vector<NodeDivision>> options = {};
  size_t all_options = 0;  // that nodes and outputs have; the search compares some of them
  size_t late = 0;         // nodes and outputs that stay whole, since time was over
};
inline constexpr double kShardTicks = 1e12;  // in a second

struct ShardProblemOptions {
  double exchange_share = 1;  // of their time that counts: 1 if nothing overlaps with them
  // Operands take memory of their own, as far as they are larger than the least that devices may
  // hold of them. This counts those twice that are held so, but it helps to find what fits.
  bool counts_copies = false;
  bool exchanges_in_loops = true;  // loops and branches may be divided so that devices exchange
  // Asked before each node and output, and before each of its options. From the first yes on, what
  // nobody states stays whole; the node that is looked at has the options that have prices.
  std::function<bool()> is_late = {};
  Progress& progress = no_progress();  // advances at each node
};
Result<ShardProblem> shard_problem(const Graph& graph, const MeshRef& mesh, ShardPrices& prices,
                                   const ShardProblemOptions& options = {});

// The graph, with what the assignment says of each value.
Graph with_assignment(const Graph& graph, const MeshRef& mesh, const ShardProblem& problem,
                      const Assignment& assignment);

}  // namespace hone
