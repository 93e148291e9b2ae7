#include "rewrite/constants.h"

#include <algorithm>
#include <vector>

#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/fold_limits.h"

namespace hone {

bool is_move(const Graph& graph, NodeId n) {
  return class_of(graph.opcode(n)) == OpClass::movement && graph.operands(n).size() == 1;
}

Result<std::optional<Tensor>> made_of_constants(const Graph& graph, ValueId v) {
  constexpr size_t kMostNodes = 16;
  std::vector<NodeId> nodes = {graph.producer(v)};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId n = nodes[i];
    const Opcode opcode = graph.opcode(n);
    const bool is_plain =
        is_constant(opcode) || is_elementwise(opcode) || is_quantize(opcode) || is_move(graph, n);
    if (!is_plain || nodes.size() > kMostNodes || !graph.type(graph.result(n)).is_static())
      return std::optional<Tensor>();
    for (ValueId operand : graph.operands(n))
      if (!operand.is_none() && std::ranges::find(nodes, graph.producer(operand)) == nodes.end())
        nodes.push_back(graph.producer(operand));
  }
  int64_t known = graph.type(v).static_bytes();
  double computed = 0;  // bytes in the reference
  for (NodeId n : nodes) {
    const Type type = graph.type(graph.result(n));
    if (is_constant(graph.opcode(n)))
      known += type.static_bytes();
    else
      computed += 8.0 * static_cast<double>(type.static_elements());
  }
  if (computed > static_cast<double>(most_bytes_to_fold(known))) return std::optional<Tensor>();
  std::erase_if(nodes, [&](NodeId n) { return is_constant(graph.opcode(n)); });
  if (nodes.empty()) return std::optional(graph.constant(graph.producer(v)));
  std::ranges::sort(nodes);
  const Graph alone = HONE_TRY(extract_subgraph(graph, nodes, {&v, 1}));
  return std::optional(std::move(HONE_TRY(evaluate(alone, {}))[0]));
}

Attrs changed_attrs(Op op, const Attrs& changes) {
  Attrs attrs;
  for (size_t i = 0; i < op.attrs().size(); ++i)
    attrs.emplace_back(op.def().attrs[i].name, op.attrs()[i]);
  for (const auto& [name, value] : changes)
    std::ranges::find(attrs, name, &Attrs::value_type::first)->second = value;
  return attrs;
}

}  // namespace hone
