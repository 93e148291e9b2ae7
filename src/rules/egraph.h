#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "rules/match.h"

// Many graphs at once that compute the same: nodes over classes of equal values. A rule adds nodes
// and unites classes; nothing is taken away, so the order in which rules apply does not matter.
// Extraction (extract.h) chooses one of the graphs.

namespace hone {

class EGraph {
 public:
  static constexpr uint32_t kSource = UINT32_MAX;

  // A node of a class, and which of its results that is.
  struct Member {
    NodeId node;
    uint32_t result = 0;
  };

  // All sizes are numbers. Nodes with regions stay as they are.
  static Result<EGraph> of(const Graph& graph);

  // ---- Growing ----------------------------------------------------------------------------------

  // Adds the right side of the rule at the match, in whose values these are classes, and unites its
  // results with those of the left one. True if that has said anything new. `origin` is what
  // origin() says of new nodes.
  Result<bool> apply(const Rule& rule, const RuleMatch& match, uint32_t origin);
  // The classes of the graph's outputs, for these of its inputs.
  Result<std::vector<ValueId>> add(const Graph& graph, std::span<const ValueId> inputs,
                                   uint32_t origin = kSource);
  // Both are equal from now on. True if that is new.
  bool unite(ValueId a, ValueId b);
  // Equal nodes over equal classes become one, and their results are united, until there are none.
  // Before that, nothing below may be asked but find().
  void rebuild();
  bool is_rebuilt() const { return is_rebuilt_; }

  // ---- Reading ----------------------------------------------------------------------------------

  // The number of a class; that of others changes when they are united with it.
  ValueId find(ValueId v) const;
  bool is_alive(NodeId n) const { return !nodes_[n.index].is_dead; }
  size_t node_capacity() const { return nodes_.size(); }  // with those that are dead
  size_t class_capacity() const { return parent_.size(); }
  size_t alive_nodes() const { return alive_; }
  size_t memory_bytes() const;

  Op op(NodeId n) const { return nodes_[n.index].op; }
  Opcode opcode(NodeId n) const { return op(n).opcode(); }
  std::span<const ValueId> operands(NodeId n) const {
    return {operands_.data() + nodes_[n.index].operands, nodes_[n.index].operand_count};
  }
  std::span<const ValueId> results(NodeId n) const {
    return {results_.data() + nodes_[n.index].results, nodes_[n.index].result_count};
  }
  std::span<const GraphRef> regions(NodeId n) const;
  const Tensor& constant(NodeId n) const { return constants_[nodes_[n.index].payload]; }
  // The application of a rule that made it; kSource: it is of the graph.
  uint32_t origin(NodeId n) const { return nodes_[n.index].origin; }

  // Rules whose right side has no nodes leave none behind. The value that their results were united
  // with is an input of the left side, so no graph without cycles takes these from there.
  struct Shortcut {
    ValueId result;
    uint32_t origin = 0;
  };
  std::span<const Shortcut> shortcuts() const { return shortcuts_; }

  Type type(ValueId v) const { return types_[v.index]; }
  const std::string& name(ValueId v) const { return names_[v.index]; }
  std::span<const Member> members(ValueId v) const { return members_[v.index]; }
  std::span<const NodeId> readers(ValueId v) const { return readers_[v.index]; }
  std::span<const NodeId> nodes(Opcode opcode) const {
    return by_opcode_[static_cast<size_t>(opcode)];
  }

  const std::string& graph_name() const { return graph_name_; }
  std::span<const ValueId> inputs() const { return inputs_; }
  std::vector<ValueId> outputs() const;
  // The class of each value of a graph, if it is known to compute what a class does: by what makes
  // it, else by its name. None: it is not.
  std::vector<ValueId> classes_in(const Graph& graph) const;
  std::span<const NodeId> effects() const { return effects_; }  // nodes that must stay
  std::span<const Donation> donations() const { return donations_; }

 private:
  struct Node {
    Op op;
    uint32_t operands = 0, operand_count = 0;  // in operands_
    uint32_t results = 0, result_count = 0;    // in results_
    uint32_t payload = 0;  // of a parameter, a constant or what has regions: which one
    uint32_t origin = kSource;
    bool is_dead = false;  // another node is equal
  };

  uint64_t hash(Op op, uint32_t payload, std::span<const ValueId> operands) const;
  uint64_t hash(const Node& node) const;
  bool equal(const Node& node, Op op, uint32_t payload, std::span<const ValueId> operands) const;
  std::optional<NodeId> equal_to(Op op, uint32_t payload, std::span<const ValueId> operands) const;
  std::span<const ValueId> operands(const Node& node) const {
    return {operands_.data() + node.operands, node.operand_count};
  }
  ValueId add_class(Type type, std::string_view name);
  // Operands are in operands_ from `begin` on.
  NodeId add_node(Op op, uint32_t begin, uint32_t payload, std::span<const Type> results,
                  uint32_t origin);
  uint32_t payload_of(const Graph& graph, NodeId n);
  std::optional<uint32_t> known_constant(const Tensor& tensor) const;
  bool merge_equal();
  void index();

  std::string graph_name_;
  std::vector<Node> nodes_;
  std::vector<ValueId> operands_, results_;
  std::unordered_multimap<uint64_t, NodeId> known_;  // nodes by hash
  size_t alive_ = 0;
  std::vector<uint32_t> parent_;  // by value: another one of its class, or itself
  std::vector<Type> types_;
  std::vector<std::string> names_;
  std::vector<std::vector<Member>> members_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<std::vector<NodeId>> by_opcode_;
  std::vector<Tensor> constants_;
  std::vector<std::vector<GraphRef>> regions_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<NodeId> effects_;
  std::vector<Donation> donations_;
  std::vector<Shortcut> shortcuts_;
  bool is_rebuilt_ = false;
};

}  // namespace hone
