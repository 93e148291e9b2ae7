#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/sharding.h"
#include "shard/reshard.h"

// The program of one device of a mesh, from a graph with shardings.

namespace hone {

// Data that devices exchange, and why.
struct ShardMessage : MeshExchange {
  std::string value;  // "%h"
  std::string node;   // that needs it: "node '%y' (dot)", "output 0"

  void repeat(int64_t trips) { bytes *= trips, times *= trips; }
};

// A node that each device computes along dims that its operands or results have divided; or a
// value, "%h", with an axis that its size has no room for.
struct WholeNode {
  std::string node;
  std::string reason;
};

struct Partition {
  Graph graph = Graph();  // all devices run it; inputs and outputs are the parts of a device
  MeshRef mesh = {};
  std::vector<ShardLayout> inputs = {};
  std::vector<ShardLayout> outputs = {};
  // Each value of the whole graph where it is made.
  struct MadeValue {
    ShardLayout layout = {};
    std::string_view kind = "";  // what combines a partial one
    Type part = {};              // what a device has; null: nobody needs the value
  };
  std::vector<MadeValue> values = {};
  std::vector<ShardMessage> messages = {};
  std::vector<WholeNode> whole = {};
  // Values that are divided by the graph's word, and that each device makes whole.
  std::set<std::string> made_whole = {};
};

inline constexpr int64_t kMostPartitionDevices = 4096;

// The graph that partition_graph() divides: composites are spelled out.
Result<Graph> spelled_out(const Graph& graph);

// Composites are spelled out first, and shardings propagated. Where axes do not divide the size of
// a dim, the last devices have padding behind their elements. Each device has at least one element:
// an axis that would leave one without divides the dim no further. Windows, slices and pads fetch
// what neighbours have. Values that are not divided are computed on all devices; where the graph
// says otherwise, `whole` says why.
//
// Static graphs that do not talk to devices themselves, on a mesh whose devices are in order. Ways
// between layouts are the cheapest by the price.
Result<Partition> partition_graph(const Graph& graph, const ReshardPrice& price = nullptr);

// The same by a graph whose values all say how they are divided (search/auto_shard.h): a node is
// divided as its results say, and its operands say nothing. A result that is partial says that the
// reduced dims are divided; whoever reads it needs the sum. If an op cannot be divided so,
// `whole` says why. Composites are spelled out already.
Result<Partition> partition_exactly(const Graph& graph, const MeshRef& mesh,
                                    const ReshardPrice& price = nullptr);

// The graph, which has no composites, with what the partition found of its values: it says all, and
// partition_exactly() makes the same partition of it.
Graph with_layouts(Graph graph, const Partition& partition);

// Errors: the graph has collectives of its own, or no programs are made for such a mesh.
Status check_can_partition(const Graph& graph, const Mesh& mesh);

}  // namespace hone
