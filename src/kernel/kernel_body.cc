#include "kernel/kernel_body.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/op_facts.h"
#include "kernel/update.h"

namespace hone {

namespace {

bool reduces(Opcode opcode) {
  const OpClass op_class = class_of(opcode);
  return op_class == OpClass::contraction || op_class == OpClass::reduction ||
         op_class == OpClass::window;
}

bool stays_inside(GraphView graph, ValueId value) {
  return is_constant(graph.opcode(graph.producer(value))) && graph.type(value).elements().is(1);
}

// Nodes stand in the graph's order.
bool contains(GraphView graph, std::span<const NodeId> nodes, NodeId node) {
  const auto position = [graph](NodeId n) { return graph.position(n); };
  return std::ranges::binary_search(nodes, graph.position(node), {}, position);
}

// Values, each once, in the order in which they come.
class DistinctValues {
 public:
  void add(ValueId value) {
    if (values_.size() < kFew) {
      if (std::ranges::find(values_, value) != values_.end()) return;
    } else {
      if (seen_.empty())
        for (ValueId v : values_) seen_.insert(v.index);
      if (!seen_.insert(value.index).second) return;
    }
    values_.push_back(value);
  }
  std::vector<ValueId> take() && { return std::move(values_); }

 private:
  static constexpr size_t kFew = 16;  // that are sooner looked at one by one
  std::vector<ValueId> values_;
  std::unordered_set<uint32_t> seen_;
};

}  // namespace

void KernelHasher::add(const Layout& layout) { hasher_.add(print(layout)); }

uint64_t KernelHasher::finish(bool in_place, std::span<const int64_t> window) {
  if (in_place) hasher_.add("in place");
  for (int64_t points : window) hasher_.add(static_cast<uint64_t>(points));
  return hasher_.value();
}

uint64_t kernel_hash(const KernelBody& body) {
  KernelHasher hasher(structural_hash(body.graph));
  for (const std::vector<Layout>* layouts : {&body.inputs, &body.outputs})
    for (const Layout& layout : *layouts) hasher.add(layout);
  return hasher.finish(body.in_place, body.window);
}

std::vector<NodeId> computing_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId node : graph.nodes())
    if (!is_leaf(graph.opcode(node))) nodes.push_back(node);
  return nodes;
}

KernelSpace space_of(const KernelBody& body) {
  const Graph& graph = body.graph;
  KernelSpace space;
  int reducing = 0;
  for (NodeId node : graph.nodes()) {
    if (!reduces(graph.opcode(node))) continue;
    space.anchor = node;
    ++reducing;
  }
  if (reducing != 1) space.anchor = {};
  if (!graph.outputs().empty()) {
    const ValueId output = graph.outputs()[0];
    const ValueId points = body.in_place ? updates_of(graph, graph.producer(output)) : output;
    space.dims = parallel_dims(graph.type(points));
  }
  for (size_t d = 0; d < body.window.size(); ++d) space.dims[d].extent = body.window[d];
  space.parallel = static_cast<int>(space.dims.size());
  if (!space.has_anchor()) return space;
  for (const IterDim& dim : relation_of(graph, space.anchor).dims)
    if (dim.kind == IterKind::reduction) space.dims.push_back(dim);
  return space;
}

// ---- Groups -------------------------------------------------------------------------------------

AccessRelation relation_of(GraphView graph, NodeId node) {
  const std::vector<Type> operands = graph.operand_types(node);
  return access_of({graph.op(node), operands}, graph.result_types(node));
}

bool only_moves(Opcode opcode) {
  return class_of(opcode) == OpClass::movement && !op_def(opcode).traits.is_piecewise;
}

bool is_fusible(Opcode opcode) {
  switch (class_of(opcode)) {
    case OpClass::elementwise:
    case OpClass::movement:
    case OpClass::contraction:
    case OpClass::reduction:
    case OpClass::segmented:
    case OpClass::window: return true;
    case OpClass::indexed: return op_def(opcode).traits.updates == 0;
    case OpClass::generator: return op_def(opcode).operands.empty();  // iota, not random bits
    default: return false;
  }
}

bool has_points(Opcode opcode) {
  return is_fusible(opcode) || class_of(opcode) == OpClass::indexed;
}

GroupPorts ports_of(GraphView graph, UsersView users, std::span<const NodeId> nodes) {
  auto is_inside = [&](NodeId node) { return contains(graph, nodes, node); };
  GroupPorts ports;
  DistinctValues inputs;
  for (NodeId node : nodes) {
    for (ValueId operand : graph.operands(node))
      if (!operand.is_none() && !is_inside(graph.producer(operand)) &&
          !stays_inside(graph, operand))
        inputs.add(operand);
    for (ValueId result : graph.results(node)) {
      const bool is_read =
          std::ranges::any_of(users.of(result), [&](NodeId user) { return !is_inside(user); });
      if (nodes.size() == 1 || is_read || users.is_output(result)) ports.outputs.push_back(result);
    }
  }
  ports.inputs = std::move(inputs).take();
  return ports;
}

uint64_t group_shape(GraphView graph, std::span<const NodeId> nodes, const GroupPorts& ports,
                     const std::vector<Layout>& layouts) {
  Hasher hasher;
  const auto add_port = [&](ValueId v) {
    hasher.add(graph.type(v).hash());
    if (v.index >= layouts.size()) return;
    for (const Layout::Part& part : layouts[v.index].parts)
      hasher.add(part.dim).add(part.block).add(part.is_inner);
  };
  std::unordered_map<uint32_t, int64_t> known;  // values, by what they are called here
  for (ValueId v : ports.inputs) {
    known.emplace(v.index, known.size());
    add_port(v);
  }
  for (NodeId node : nodes) {
    hasher.add(graph.op(node).hash());
    for (ValueId v : graph.operands(node)) {
      const auto at = v.is_none() ? known.end() : known.find(v.index);
      hasher.add(at == known.end() ? -1 : at->second);
      if (v.is_none() || at != known.end()) continue;
      std::vector<std::byte> scratch;  // of a number in the code
      hasher.add(graph.type(v).hash());
      hasher.add(graph.constant(graph.producer(v)).bytes_once(scratch));
    }
    for (ValueId v : graph.results(node)) known.emplace(v.index, known.size());
  }
  for (ValueId v : ports.outputs) {
    hasher.add(known.at(v.index));
    add_port(v);
  }
  return hasher.value();
}

namespace {

class BodyCopy {
 public:
  BodyCopy(GraphView graph, std::span<const NodeId> nodes, const GroupPorts& ports)
      : graph_(graph), nodes_(nodes) {
    for (ValueId input : ports.inputs)
      copies_.emplace(input.index, target_.add_parameter(graph.type(input), graph.name(input)));
    std::vector<ValueId> outputs;
    for (ValueId output : ports.outputs) {
      add(graph.producer(output));
      outputs.push_back(copies_.at(output.index));
    }
    target_.set_outputs(std::move(outputs));
  }
  Graph take() && { return std::move(target_); }

 private:
  // The operands of a node come before it, one by one.
  void add(NodeId last) {
    std::vector<std::pair<NodeId, size_t>> open{{last, 0}};  // nodes, and operands that are done
    while (!open.empty()) {
      auto& [node, done] = open.back();
      const std::span<const ValueId> operands = graph_.operands(node);
      if (copies_.contains(graph_.result(node).index)) {
        open.pop_back();
      } else if (done == operands.size()) {
        copy(node);
        open.pop_back();
      } else if (const ValueId operand = operands[done++]; !operand.is_none()) {
        const NodeId producer = graph_.producer(operand);
        if (contains(graph_, nodes_, producer))
          open.emplace_back(producer, 0);
        else if (!copies_.contains(operand.index))
          copies_.emplace(operand.index, number(operand));
      }
    }
  }

  void copy(NodeId node) {
    std::vector<ValueId> operands;
    for (ValueId operand : graph_.operands(node))
      operands.push_back(operand.is_none() ? operand : copies_.at(operand.index));
    NodeId copy = equal_node(graph_.op(node), operands);
    const bool is_new = copy == NodeId{};
    if (is_new) {
      copy = target_.append(graph_.op(node), operands).value();
      copied_.push_back(copy);
    }
    for (size_t i = 0; i < graph_.results(node).size(); ++i) {
      copies_.emplace(graph_.result(node, i).index, target_.result(copy, i));
      if (is_new) target_.set_name(target_.result(copy, i), graph_.name(graph_.result(node, i)));
    }
  }

  ValueId number(ValueId constant) {
    const Tensor& value = graph_.constant(graph_.producer(constant));
    for (ValueId known : numbers_)
      if (target_.type(known) == value.type() &&
          target_.constant(target_.producer(known)).same_bytes(value))
        return known;
    return numbers_.emplace_back(target_.add_constant(value, graph_.name(constant)));
  }

  NodeId equal_node(Op op, std::span<const ValueId> operands) const {
    for (NodeId node : copied_)
      if (target_.op(node) == op && std::ranges::equal(target_.operands(node), operands))
        return node;
    return {};
  }

  const GraphView graph_;
  const std::span<const NodeId> nodes_;
  Graph target_;
  std::unordered_map<uint32_t, ValueId> copies_;  // by value of the graph
  std::vector<NodeId> copied_;                    // of the target
  std::vector<ValueId> numbers_;                  // of the target
};

}  // namespace

KernelBody body_of(GraphView graph, UsersView users, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts) {
  const GroupPorts ports = ports_of(graph, users, nodes);
  const auto layout_of = [&](ValueId value) {
    const bool is_known = value.index < layouts.size() && !layouts[value.index].parts.empty();
    return is_known ? layouts[value.index] : Layout::row_major(graph.type(value).rank());
  };
  KernelBody body;
  body.graph = BodyCopy(graph, nodes, ports).take();
  for (ValueId input : ports.inputs) body.inputs.push_back(layout_of(input));
  for (ValueId output : ports.outputs) body.outputs.push_back(layout_of(output));
  return body;
}

KernelBody body_of(const Graph& graph, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts) {
  return body_of(graph, Users(graph), nodes, layouts);
}

}  // namespace hone
