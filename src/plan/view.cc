#include "plan/view.h"

#include <unordered_set>

#include "base/planted.h"
#include "ir/op_def.h"

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

Status check_opcode(GraphView graph, NodeId node) {
  const OpDef& def = graph.op(node).def();
  if (def.traits.may_be_view) return {};
  return bad_input("a {} has memory of its own; views are reshapes, bitcasts, slices and concats",
                   name(def.opcode));
}

Status check_concat(GraphView graph, UsersView users, NodeId node) {
  const int64_t axis = graph.op(node).integer("axis");
  if (first_long_dim(graph.type(graph.result(node))) < axis)
    return bad_input("its operands do not lie side by side in it");
  const std::span<const ValueId> operands = graph.operands(node);
  std::unordered_set<uint32_t> seen;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Opcode opcode = graph.opcode(graph.producer(operands[i]));
    const std::string_view name = graph.name(operands[i]);
    if (is_leaf(opcode))
      return bad_input("'%{}' is {}, which lies elsewhere", name,
                       opcode == Opcode::constant ? "a constant" : "an input of the graph");
    if (users.is_output(operands[i])) return bad_input("'%{}' is an output of the graph", name);
    if (!seen.insert(operands[i].index).second) return bad_input("'%{}' stands in it twice", name);
    const Type type = graph.type(operands[i]);
    if (!(type.elements() * bits(type.dtype())).divisible_by(8))
      return bad_input("'%{}' ends within a byte", name);
  }
  return {};
}

}  // namespace

bool is_number(GraphView graph, ValueId value) {
  return graph.opcode(graph.producer(value)) == Opcode::constant &&
         graph.type(value).elements().is(1);
}

Status check_view(GraphView graph, UsersView users, NodeId node) {
  const Op op = graph.op(node);
  if (op.opcode() == Opcode::concat) return check_concat(graph, users, node);
  HONE_TRY(check_opcode(graph, node));
  if (users.is_output(graph.result(node)))
    return bad_input("an output of the graph has memory of its own");
  if (is_number(graph, graph.operands(node)[0]))
    return bad_input("a constant of one element has no memory");
  if (op.opcode() != Opcode::slice) return {};
  return check_slice(op, graph.type(graph.operands(node)[0]), graph.type(graph.result(node)));
}

Dim view_offset(GraphView graph, NodeId node) {
  if (graph.opcode(node) != Opcode::slice) return 0;
  const Type operand = graph.type(graph.operands(node)[0]);
  return HONE_PLANT(view_offset,
                    floordiv(first_element(graph.op(node), operand) * bits(operand.dtype()), 8),
                    Dim(0));
}

Dim part_offset(GraphView graph, NodeId concat, size_t operand) {
  Dim offset = 0;
  for (ValueId before : graph.operands(concat).first(operand)) {
    const Type type = graph.type(before);
    offset = offset + floordiv(type.elements() * bits(type.dtype()), 8);
  }
  return offset;
}

}  // namespace hone
