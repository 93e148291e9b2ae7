#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/sharding.h"
#include "shard/reshard.h"

// The program of one device of a mesh, from a graph with shardings.

namespace hone {

// Data that devices exchange, and why.
struct ShardMessage {
  ReshardKind kind;
  std::string value;  // "%h"
  std::string node;   // that needs it: "node '%y' (dot)", "output 0"
  int64_t bytes = 0;  // that each device receives
};

// A node that each device computes along dims that its operands or results have divided.
struct WholeNode {
  std::string node;
  std::string reason;
};

struct Partition {
  Graph graph = Graph();  // all devices run it; inputs and outputs are the parts of a device
  MeshRef mesh = {};
  std::vector<ShardLayout> inputs = {};
  std::vector<ShardLayout> outputs = {};
  std::vector<ShardMessage> messages = {};
  std::vector<WholeNode> whole = {};
};

inline constexpr int64_t kMostPartitionDevices = 4096;

// Composites are spelled out first, and shardings propagated. An axis that does not divide the size
// of its dim divides it no further. Values that are not divided are computed on all devices; where
// the graph says otherwise, `whole` says why.
//
// Static graphs that do not talk to devices themselves, on a mesh whose devices are in order.
Result<Partition> partition_graph(const Graph& graph);

// The place of a device's part: how many elements of the dim stand before it.
int64_t first_element(const Mesh& mesh, const MeshParts& axes, int64_t size, int64_t device);

}  // namespace hone
