#include "plan/view.h"

namespace hone {
namespace {

// All dims of the result before this one have one element.
int first_long_dim(Type type) {
  int dim = 0;
  while (dim < type.rank() && type.dim(dim).is(1)) ++dim;
  return dim;
}

Dim first_element(Op slice, Type operand) {
  Dim element = 0;
  for (int i = 0; i < operand.rank(); ++i)
    element = element * operand.dim(i) + slice.dims("start")[static_cast<size_t>(i)];
  return element;
}

Status check_slice(Op slice, Type operand, Type result) {
  const int first = first_long_dim(result);
  const Ints& strides = slice.ints("stride");
  for (int i = first; i < operand.rank(); ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[static_cast<size_t>(i)];
    if (stride != 1) return bad_input("it takes one of {} elements in dim {}", stride, i);
    if (i > first && operand.dim(i) != result.dim(i))
      return bad_input("its elements are apart: it takes {} of {} in dim {}",
                       result.dim(i).to_string(), operand.dim(i).to_string(), i);
  }
  const Dim bits_before = first_element(slice, operand) * bits(operand.dtype());
  if (!bits_before.divisible_by(8)) return bad_input("it begins within a byte");
  return {};
}

}  // namespace

Status check_view(const Graph& graph, NodeId node) {
  const Op op = graph.op(node);
  switch (op.opcode()) {
    case Opcode::reshape:
    case Opcode::bitcast: return {};
    case Opcode::slice:
      return check_slice(op, graph.type(graph.operands(node)[0]), graph.type(graph.result(node)));
    default:
      return bad_input("a {} has memory of its own; views are reshapes, bitcasts and slices",
                       op.name());
  }
}

Dim view_offset(const Graph& graph, NodeId node) {
  if (graph.opcode(node) != Opcode::slice) return 0;
  const Type operand = graph.type(graph.operands(node)[0]);
  return floordiv(first_element(graph.op(node), operand) * bits(operand.dtype()), 8);
}

}  // namespace hone
