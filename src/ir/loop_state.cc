#include "ir/loop_state.h"

#include "ir/op_facts.h"

namespace hone {

std::vector<bool> unchanged_state(const Graph& graph, NodeId node) {
  size_t states = 0;
  if (graph.opcode(node) == Opcode::while_) states = graph.operands(node).size();
  if (graph.opcode(node) == Opcode::scan)
    states = static_cast<size_t>(graph.op(node).integer("carried"));
  std::vector<bool> is_unchanged;
  for (size_t i = 0; i < states; ++i) {
    const Graph& body = *graph.regions(node).back();
    is_unchanged.push_back(body.outputs()[i] == body.inputs()[i]);
  }
  return is_unchanged;
}

Dim loop_trips(const Graph& graph, NodeId node) {
  const Op op = graph.op(node);
  if (!is_scan(op.opcode())) return kAssumedTrips;
  const auto carried = static_cast<size_t>(op.integer("carried"));
  const std::span<const ValueId> operands = graph.operands(node);
  return operands.size() > carried ? graph.type(operands[carried]).dim(0) : op.dims("length")[0];
}

}  // namespace hone
