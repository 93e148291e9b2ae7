#include "rewrite/numbers.h"

#include "ir/op_facts.h"

namespace hone {

std::optional<Tensor> repeated_element(const Graph& graph, ValueId v) {
  NodeId n = graph.producer(v);
  while (repeats_elements(graph.opcode(n)) || regroups_dims(graph.opcode(n)))
    n = graph.producer(graph.operands(n)[0]);
  if (!is_constant(graph.opcode(n)) || graph.constant(n).elements() != 1) return std::nullopt;
  const Tensor& one = graph.constant(n);
  return one.viewed_as(Type::scalar(one.dtype()));
}

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(graph.value_count());
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) ++readers[v.index];
  for (ValueId v : graph.outputs()) ++readers[v.index];
  return readers;
}

Result<ValueId> append_number(Graph& graph, const Tensor& element, const Type& type) {
  const ValueId one = graph.add_constant(element);
  if (type.rank() == 0) return one;
  const Op op = Op::get(Opcode::broadcast,
                        {{"dims", Dims(type.dims().begin(), type.dims().end())}, {"map", Ints{}}});
  return append_value(graph, op, {&one, 1});
}

Result<ValueId> append_number(Graph& graph, double number, const Type& type) {
  return append_number(graph, Tensor::from_reals(Type::scalar(type.dtype()), {{number}}), type);
}

Result<ValueId> append_value(Graph& graph, Op op, std::span<const ValueId> operands) {
  const NodeId made = HONE_TRY(graph.append(op, operands));
  return graph.result(made);
}

}  // namespace hone
