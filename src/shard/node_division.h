#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "shard/halo.h"
#include "shard/index_range.h"
#include "shard/reshard.h"
#include "shard/sharding_rule.h"
#include "shard/value_layout.h"

// The ways to divide one node of a graph among devices.

namespace hone {

struct NodeDivision {
  std::vector<MeshParts> axes = {};          // of each factor of the rule
  std::vector<ShardLayout> operands = {};    // as the parts of a device are; absent: no dims
  std::vector<ShardLayout> results = {};     // partial along the axes of reductions
  std::string_view kind = "";                // that combines partial results: sum, max or min
  std::vector<Halo> halos = {};              // what is fetched for operand 0
  std::vector<IndexRange> ranges = {};       // what a device has of operand 0, if data addresses it
  std::vector<MeshExchange> exchanges = {};  // within the node
  std::vector<Type> types = {};              // of the operands that `op` takes; absent: null
  Op op = {};                                // for these parts, and what is fetched
  std::optional<DType> sums = {};            // the type of partial sums that need a wider one

  // The type in which a result is where it is made.
  Type made_as(Type result) const { return sums ? Type::get(*sums, result.dims()) : result; }
};

class NodeDivider {
 public:
  // The node of a static graph without composites. The rule of a node with regions is that of what
  // its regions compute.
  static Result<NodeDivider> make(const Graph& graph, NodeId n);

  const ShardingRule& rule() const { return rule_; }

  // The reason that a factor cannot be divided without an exchange before the node; else nothing.
  std::string obstacle(int factor) const;
  // As many of the axes as may divide the factor, if devices may have padding and fetch what their
  // neighbours have; else nothing, and the reason.
  MeshParts fitting(int factor, const MeshParts& wanted, std::string& reason) const;
  // Operand 0 and the results have the factor, and each device computes its part alone.
  bool passes(int factor) const;
  // The parts of devices are combined with those before them, which they tell each other.
  bool is_running(int factor) const;
  // Operands stand one behind the other along the dim, and devices send each other what they need.
  bool is_joined(int factor) const;
  // How they stand, if the factor has these axes; none: not each device has a part of each.
  std::vector<Stretch> stretches(const MeshParts& axes) const;
  // The parts that devices have of a reduction combine to the result.
  bool is_combined(int factor) const;

  // None: the node has no form for such parts.
  std::optional<NodeDivision> division(std::vector<MeshParts> axes) const;
  // The axes of factors by what the results have, as far as the node permits them. A division()
  // has these axes itself, if its results show all of them.
  std::vector<MeshParts> axes_of(const std::vector<ShardLayout>& results) const;
  // The axes of a factor in a tensor that is divided so.
  MeshParts axes_in(const TensorFactors& tensor, const ShardLayout& layout, int factor) const;

 private:
  NodeDivider(const Graph& graph, NodeId n) : graph_(&graph), node_(n) {}
  bool is_written_elsewhere(int factor) const;
  bool is_numbered_across(int factor) const;
  bool meets_neighbours(int factor) const;
  const AddressedDim* addressed_by(int factor) const;
  bool stands_alone(int factor) const;
  const DimWindow* window_of(int factor) const;
  std::optional<ShardLayout> layout_by(const TensorFactors& tensor,
                                       const std::vector<MeshParts>& axes) const;
  std::vector<MeshExchange> exchanges(const NodeDivision& division) const;
  std::vector<Type> operand_types(const NodeDivision& division) const;
  void combine(const MeshParts& partial, NodeDivision& division) const;
  std::optional<Op> local_op(const NodeDivision& division) const;

  const Graph* graph_;
  NodeId node_;
  ShardingRule rule_;
  std::vector<DimWindow> windows_;
  std::vector<AddressedDim> addressed_;
  std::string_view partial_;   // how results that lack reduced dims combine; empty: they cannot
  std::optional<DType> sums_;  // the type of such results, if they are added up in a wider one
};

// All divisions by whole axes of the mesh that the results of the node show, the undivided one
// first. Axes of one device divide nothing.
std::vector<NodeDivision> divisions_of(const NodeDivider& divider, const Mesh& mesh);

}  // namespace hone
