#include "plan/kernel_body.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/op_def.h"
#include "plan/in_place.h"

namespace hone {

namespace {

bool reduces(Opcode opcode) {
  switch (opcode) {
    case Opcode::dot:
    case Opcode::conv:
    case Opcode::reduce:
    case Opcode::arg_reduce:
    case Opcode::window_reduce: return true;
    default: return false;
  }
}

bool stays_inside(const Graph& graph, ValueId value) {
  return graph.opcode(graph.producer(value)) == Opcode::constant &&
         graph.type(value).elements().is(1);
}

void add_once(std::vector<ValueId>& values, ValueId value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

}  // namespace

uint64_t kernel_hash(const KernelBody& body) {
  Hasher hasher(structural_hash(body.graph));
  for (const std::vector<Layout>* layouts : {&body.inputs, &body.outputs})
    for (const Layout& layout : *layouts) hasher.add(print(layout));
  if (body.in_place) hasher.add("in place");
  return hasher.value();
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
  space.parallel = static_cast<int>(space.dims.size());
  if (!space.has_anchor()) return space;
  const std::vector<Type> operands = graph.operand_types(space.anchor);
  const std::vector<Type> results = graph.result_types(space.anchor);
  for (const IterDim& dim : access_of({graph.op(space.anchor), operands}, results).dims)
    if (dim.kind == IterKind::reduction) space.dims.push_back(dim);
  return space;
}

// ---- Groups -------------------------------------------------------------------------------------

bool is_fusible(Opcode opcode) {
  switch (opcode) {
    case Opcode::broadcast:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::pad:
    case Opcode::concat:
    case Opcode::reverse:
    case Opcode::dynamic_slice:
    case Opcode::gather:
    case Opcode::iota: return true;
    default: return reduces(opcode) || (!is_composite(opcode) && op_def(opcode).traits.elementwise);
  }
}

bool has_points(Opcode opcode) { return is_fusible(opcode) || opcode == Opcode::dynamic_update; }

GroupPorts ports_of(const Graph& graph, const Users& users, std::span<const NodeId> nodes) {
  auto is_inside = [&](NodeId node) { return std::ranges::binary_search(nodes, node); };
  GroupPorts ports;
  for (NodeId node : nodes) {
    for (ValueId operand : graph.operands(node))
      if (!operand.is_none() && !is_inside(graph.producer(operand)) &&
          !stays_inside(graph, operand))
        add_once(ports.inputs, operand);
    for (ValueId result : graph.results(node)) {
      const bool is_read =
          std::ranges::any_of(users.of(result), [&](NodeId user) { return !is_inside(user); });
      if (nodes.size() == 1 || is_read || users.is_output(result)) ports.outputs.push_back(result);
    }
  }
  return ports;
}

KernelBody body_of(const Graph& graph, const Users& users, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts) {
  const GroupPorts ports = ports_of(graph, users, nodes);
  auto layout_of = [&](ValueId value) {
    const bool is_known = value.index < layouts.size() && !layouts[value.index].parts.empty();
    return is_known ? layouts[value.index] : Layout::row_major(graph.type(value).rank());
  };
  KernelBody body;
  std::vector<std::pair<ValueId, ValueId>> copies;  // of the graph, of the body
  auto copy_of = [&](ValueId value) {
    auto known = std::ranges::find(copies, value, &std::pair<ValueId, ValueId>::first);
    return known == copies.end() ? ValueId::none() : known->second;
  };
  for (ValueId input : ports.inputs) {
    copies.emplace_back(input, body.graph.add_parameter(graph.type(input), graph.name(input)));
    body.inputs.push_back(layout_of(input));
  }
  for (NodeId node : nodes) {
    std::vector<ValueId> operands;
    for (ValueId operand : graph.operands(node)) {
      if (!operand.is_none() && copy_of(operand).is_none())
        copies.emplace_back(
            operand,
            body.graph.add_constant(graph.constant(graph.producer(operand)), graph.name(operand)));
      operands.push_back(operand.is_none() ? operand : copy_of(operand));
    }
    const NodeId copy = body.graph.append(graph.op(node), operands).value();
    for (size_t i = 0; i < graph.results(node).size(); ++i) {
      copies.emplace_back(graph.result(node, i), body.graph.result(copy, i));
      body.graph.set_name(body.graph.result(copy, i), graph.name(graph.result(node, i)));
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId output : ports.outputs) {
    outputs.push_back(copy_of(output));
    body.outputs.push_back(layout_of(output));
  }
  body.graph.set_outputs(std::move(outputs));
  return body;
}

KernelBody body_of(const Graph& graph, std::span<const NodeId> nodes,
                   const std::vector<Layout>& layouts) {
  return body_of(graph, Users(graph), nodes, layouts);
}

}  // namespace hone
