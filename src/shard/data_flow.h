#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "shard/reshard.h"

// How data flows between a node with regions and these: what enters a loop, the state in its body
// and what leaves it are one array in several places.

namespace hone {

struct FlowPlace {
  int region = -1;         // -1: an operand or result of the node itself
  bool is_result = false;  // of the node, or of the region; else an operand, or a parameter
  size_t index = 0;
  bool is_stacked = false;  // it has a dim 0 that the other places lack: the steps of a scan
};
using FlowEdge = std::vector<FlowPlace>;  // of one array

// True if the node, or one in its regions, is for a graph that several devices run.
bool talks_to_devices(const Graph& graph, NodeId n);

// Empty for an op without regions.
std::vector<FlowEdge> data_flow(Op op, size_t operands, size_t results);

// How the values of a node with regions are divided: an array alike wherever it flows.
struct FlowLayouts {
  std::vector<ShardLayout> operands, results;
  std::vector<std::vector<ShardLayout>> inputs, outputs;  // of each region
};
// `layout_of` says how an array is divided, without the dim that some of its places lack.
FlowLayouts flow_layouts(const Graph& graph, NodeId n,
                         const std::function<ShardLayout(const FlowEdge&)>& layout_of);

}  // namespace hone
