#include <algorithm>
#include <vector>

#include "ir/op_def.h"
#include "kernel/group_work.h"
#include "kernel/kernel_body.h"
#include "kernel/stages.h"

namespace hone {

namespace {

Status check_node(const Graph& graph, NodeId node, bool is_alone) {
  const Opcode opcode = graph.opcode(node);
  const std::vector<Type> operands = graph.operand_types(node);
  if (!has_access({graph.op(node), operands})) return unsupported("{} is no kernel", name(opcode));
  if (is_alone) return {};
  if (!is_fusible(opcode)) return unsupported("{} is a kernel of its own", name(opcode));
  // What is computed where no guard holds is thrown away by `select`, which does not know them.
  if (op_def(opcode).traits.is_piecewise && is_storage_only(operands[0].dtype()))
    return unsupported("{} of {} is a kernel of its own", name(opcode), name(operands[0].dtype()));
  return {};
}

// A node outside that reads the group and is read by it would have to run in its middle.
Status check_no_way_back(const Graph& graph, std::span<const NodeId> nodes) {
  const uint32_t first = nodes.front().index, last = nodes.back().index;
  std::vector<bool> follows(last - first + 1);  // is in the group, or depends on it
  size_t next = 0;
  for (uint32_t i = first; i <= last; ++i) {
    const NodeId node{i};
    const bool is_inside = nodes[next] == node;
    for (ValueId operand : graph.operands(node)) {
      if (operand.is_none()) continue;
      const NodeId producer = graph.producer(operand);
      if (producer.index < first || !follows[producer.index - first]) continue;
      const bool from_inside = std::ranges::binary_search(nodes, producer);
      if (is_inside && !from_inside)
        return unsupported("{} reads what {} makes of the group", graph.describe(node),
                           graph.describe(producer));
      follows[i - first] = true;
    }
    if (!is_inside) continue;
    follows[i - first] = true;
    ++next;
  }
  return {};
}

Status check_outputs(const Graph& graph, std::span<const ValueId> outputs) {
  if (outputs.empty()) return bad_input("nothing reads what the group computes");
  const Type first = graph.type(outputs[0]);
  for (ValueId output : outputs)
    if (!std::ranges::equal(graph.type(output).dims(), first.dims()))
      return unsupported("{} is {} and {} is {}: one kernel writes tensors of the same dims",
                         graph.label(outputs[0]), first.to_string(), graph.label(output),
                         graph.type(output).to_string());
  return {};
}

}  // namespace

Status check_group(const Graph& graph, const Users& users, std::span<const NodeId> nodes) {
  if (nodes.empty()) return bad_input("a group of no nodes");
  if (nodes.size() > kMaxGroupNodes)
    return over_limit("a group of {} nodes, more than {}", nodes.size(), kMaxGroupNodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0 && nodes[i - 1].index >= nodes[i].index)
      return bad_input("the nodes of a group do not stand in the graph's order");
    Status good = check_node(graph, nodes[i], nodes.size() == 1);
    if (!good.ok()) return std::move(good).error().within(graph.describe(nodes[i]));
  }
  if (nodes.size() == 1) return {};
  const GroupPorts ports = ports_of(graph, users, nodes);
  HONE_TRY(check_outputs(graph, ports.outputs));
  HONE_TRY(check_no_way_back(graph, nodes));
  const KernelBody body = body_of(graph, users, nodes, {});
  Status alone = check_work(work_of(body));
  if (alone.ok() || simplest_chain(body).ok()) return {};
  return alone;
}

Status check_group(const Graph& graph, std::span<const NodeId> nodes) {
  return check_group(graph, Users(graph), nodes);
}

}  // namespace hone
