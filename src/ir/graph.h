#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op_def.h"
#include "tensor/tensor.h"

// Says what to compute: a functional SSA graph of tensor ops.
//
// Nodes stand in topological order in one vector; a graph only grows. A transformation builds a new
// graph (rewrite/). Regions are closed: a body sees its parameters alone, never outer values.
// Everything is in a few flat vectors, so a copy is a handful of memcpys.

namespace hone {

// A position in Graph's value table; `none` stands for an absent optional operand.
struct ValueId {
  uint32_t index = UINT32_MAX;
  static constexpr ValueId none() { return {}; }
  bool is_none() const { return index == UINT32_MAX; }
  auto operator<=>(const ValueId&) const = default;
};

struct NodeId {
  uint32_t index = UINT32_MAX;
  auto operator<=>(const NodeId&) const = default;
};

// Results of one node have consecutive ids.
class ValueRange {
 public:
  ValueRange(uint32_t begin, uint32_t count) : begin_(begin), count_(count) {}
  size_t size() const { return count_; }
  ValueId operator[](size_t i) const { return {begin_ + static_cast<uint32_t>(i)}; }
  struct Iterator {
    uint32_t index;
    ValueId operator*() const { return {index}; }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  Iterator begin() const { return {begin_}; }
  Iterator end() const { return {begin_ + count_}; }

 private:
  uint32_t begin_;
  uint32_t count_;
};

// The output may lie in the input's memory, if the caller gives that up: the input is its donor.
struct Donation {
  uint32_t input;
  uint32_t output;
  bool operator==(const Donation&) const = default;
};

using GraphRef = std::shared_ptr<const Graph>;
struct Shardings;  // sharding.h

class Graph {
 public:
  explicit Graph(std::string name = "main") : name_(std::move(name)) {}

  // ---- Growing -------------------------------------------------------------------------------

  // Checks operands, infers the results, appends. The only way to add an op other than a parameter
  // or a constant. Errors name the op.
  Result<NodeId> append(Op op, std::span<const ValueId> operands,
                        std::vector<GraphRef> regions = {});
  ValueId add_parameter(Type type, std::string_view name = "");
  ValueId add_constant(Tensor value, std::string_view name = "");
  void set_outputs(std::vector<ValueId> outputs);
  void set_name(std::string_view name) { name_ = name; }
  // Names need not be unique while building; the verifier wants them unique. "" removes.
  void set_name(ValueId value, std::string_view name);
  void add_donation(uint32_t input, uint32_t output);  // kept in the order of inputs
  // How values are divided among devices; null: nothing is said.
  void set_shardings(std::shared_ptr<const Shardings> shardings);
  void reserve(size_t nodes);

  // ---- Reading -------------------------------------------------------------------------------

  const std::string& name() const { return name_; }
  size_t node_count() const { return nodes_.size(); }
  size_t value_count() const { return values_.size(); }
  struct NodeRange;
  NodeRange nodes() const;  // for (NodeId n : graph.nodes())

  Op op(NodeId n) const { return nodes_[n.index].op; }
  Opcode opcode(NodeId n) const { return op(n).opcode(); }
  std::span<const ValueId> operands(NodeId n) const {
    const Node& node = nodes_[n.index];
    return {operands_.data() + node.operand_begin, node.operand_count};
  }
  ValueRange results(NodeId n) const {
    return {nodes_[n.index].result_begin, nodes_[n.index].result_count};
  }
  ValueId result(NodeId n, size_t i = 0) const { return results(n)[i]; }
  std::span<const GraphRef> regions(NodeId n) const;
  const Tensor& constant(NodeId n) const;  // of a constant node
  // Operand types with null for absent ones; application() points into `types`.
  std::vector<Type> operand_types(NodeId n) const;
  std::vector<Type> result_types(NodeId n) const;

  Type type(ValueId v) const { return values_[v.index].type; }
  NodeId producer(ValueId v) const { return {values_[v.index].node}; }
  uint32_t result_index(ValueId v) const {
    return v.index - nodes_[values_[v.index].node].result_begin;
  }
  std::string_view name(ValueId v) const;  // "" if unnamed
  std::string label(ValueId v) const;      // "%h", or "%17" if unnamed
  std::string describe(NodeId n) const;    // "node '%h' (dot)", for messages

  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  std::span<const Donation> donations() const { return donations_; }
  const Shardings* shardings() const { return shardings_.get(); }
  std::vector<Type> input_types() const;
  std::vector<Type> output_types() const;
  std::vector<Symbol> symbols() const;  // of all types and attributes, in order of appearance
  bool is_static() const;

  // Memory beside interned data, regions and tensor contents.
  size_t memory_bytes() const;

 private:
  struct Node {
    Op op;
    uint32_t operand_begin;
    uint32_t operand_count;
    uint32_t result_begin;
    uint32_t result_count;
    uint32_t payload;  // constant: index into constants_; with regions: first index into regions_
    uint32_t region_count;
  };
  struct ValueInfo {
    Type type;
    uint32_t node;
    uint32_t name;  // offset into names_ of a length-prefixed string; 0: unnamed
  };

  NodeId append_unchecked(Op op, std::span<const ValueId> operands, std::span<const Type> results,
                          uint32_t payload, uint32_t region_count);

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<ValueId> operands_;
  std::string names_ = std::string(1, '\0');
  std::vector<Tensor> constants_;
  std::vector<GraphRef> regions_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<Donation> donations_;
  std::shared_ptr<const Shardings> shardings_;
};

struct Graph::NodeRange {
  uint32_t count;
  struct Iterator {
    uint32_t index;
    NodeId operator*() const { return {index}; }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  Iterator begin() const { return {0}; }
  Iterator end() const { return {count}; }
};

inline Graph::NodeRange Graph::nodes() const { return {static_cast<uint32_t>(nodes_.size())}; }

// ---- Whole-graph questions ----------------------------------------------------------------------

// Checks every invariant: operands precede uses, types equal what inference gives, names unique,
// one meaning per symbol name, donations and shardings fit, outputs exist, regions closed and
// well-typed.
Status verify(const Graph& graph);

// A hash of the ops and of how they are connected. Names, the order of independent nodes, and dead
// nodes do not count. Stable across runs.
uint64_t structural_hash(const Graph& graph);
// The same for other weights: a constant of more than 16 elements counts by its type.
uint64_t hash_without_weights(const Graph& graph);

// Per value: the nodes that read it (a node that reads twice stands twice), in node order.
class Users {
 public:
  explicit Users(const Graph& graph);
  std::span<const NodeId> of(ValueId v) const {
    return {nodes_.data() + begin_[v.index], begin_[v.index + 1] - begin_[v.index]};
  }
  bool is_output(ValueId v) const { return output_[v.index]; }
  // Read once and not an output.
  bool has_one_use(ValueId v) const { return of(v).size() == 1 && !is_output(v); }

 private:
  std::vector<uint32_t> begin_;
  std::vector<NodeId> nodes_;
  std::vector<bool> output_;
};

// The node, or one in its regions, must not be removed, merged or folded (OpTraits::has_effect).
bool has_effect(const Graph& graph, NodeId node);

// live[n]: an output (or a node with an effect) depends on n. Parameters are always live.
std::vector<bool> live_nodes(const Graph& graph);
// The graph without nodes that are not live, in regions too.
Result<Graph> remove_dead_code(const Graph& graph);

// Replaces symbols by numbers or other symbols, in types, attributes and regions; re-infers.
Result<Graph> specialize(const Graph& graph, const Bindings& bindings);
// The bindings that make the graph's parameter types equal the given static types.
Result<Bindings> bind_inputs(const Graph& graph, std::span<const Type> actual);

// The nodes (in order) as a graph of their own: what they read from outside becomes parameters (in
// order of first use; constants are copied in), `outputs` its results.
Result<Graph> extract_subgraph(const Graph& graph, std::span<const NodeId> nodes,
                               std::span<const ValueId> outputs);

}  // namespace hone
