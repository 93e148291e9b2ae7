#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/sharding.h"
#include "shard/mesh_parts.h"

// Completes the shardings of a graph: what is said of a few values decides about the others.

namespace hone {

struct PropagateOptions {
  // Only axes that all operands and results of an op agree on go through it, and all ops count
  // alike. Else ops that move nothing come first, and each value takes the axes that fit it.
  bool is_cautious = false;
};

// How a value is divided, and why.
struct ShardingDecision {
  std::string value;    // "%h"
  std::string dims;     // "[x, -]"
  std::string because;  // "stated", "node '%y' (dot)"
};

// An op whose operands and results are not divided alike: data must move.
struct ShardingConflict {
  std::string node;  // "node '%y' (dot)"
  ShardingDecision kept, other;
  int64_t bytes = 0;        // of the smaller one of the two values, which moves at the least
  MeshParts axes = {};      // among whose devices it moves
  int64_t group_bytes = 0;  // of the value, in each group of devices along the axes
  bool is_gathered = true;  // each device needs all that its group has; else another part of it
};

struct Propagation {
  // The graph, in which all values that are divided say so, in regions too.
  Graph graph = Graph();
  MeshRef mesh = {};  // of all shardings
  std::vector<ShardingConflict> conflicts = {};
};

// The mesh of all shardings of a graph; null: it has none. A mesh without axes says that a value is
// whole, on whatever mesh, and does not count. Errors: there are two.
Result<MeshRef> mesh_of_graph(const Graph& graph);

// Both ways, to a fixed point: dims of priority 0 first, then those of 1, and so on. Axes are added
// to dims that are open or of which nothing is said, never taken away. Through loops, branches and
// calls, an array is divided alike in all places.
//
// Static graphs whose shardings are all of one mesh.
Result<Propagation> propagate_shardings(const Graph& graph, const PropagateOptions& options = {});

}  // namespace hone
