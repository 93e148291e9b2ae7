#pragma once

#include <cstdint>
#include <vector>

#include "grad/changes.h"
#include "ir/graph.h"

// Nodes with regions, seen by unzip(): one node becomes two.

namespace hone {

// Values of the graph by their ids; behind them, values that split nodes store.
using Slot = uint32_t;

struct NodePart {
  Op op;
  std::vector<Slot> operands;
  std::vector<GraphRef> regions;
  std::vector<Slot> results;  // kDropped: nobody reads it
};
inline constexpr Slot kDropped = UINT32_MAX;

struct SplitNode {
  NodePart primal;
  NodePart linear;
  std::vector<Type> stored;  // of the slots from `first_stored` on, which are results of `primal`
};

// `tangents`: the operands that are. The node is an if or a scan; others cannot be split.
Result<SplitNode> split_control(const Graph& graph, NodeId node, const Mask& tangents,
                                Slot first_stored);

}  // namespace hone
