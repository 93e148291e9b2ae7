#include "plan/view.h"

#include <unordered_set>

#include "base/planted.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

// The first element that the slice takes, in the order of memory.
Dim first_element(Op slice, Type operand, const Layout& layout) {
  const Type memory = stored_type(layout, operand);
  Dim element = 0;
  for (int i = 0; i < memory.rank(); ++i) {
    const Layout::Part& part = layout.parts[static_cast<size_t>(i)];
    const Dim start = slice.dims("start")[static_cast<size_t>(part.dim)];
    element = element * memory.dim(i) + (part.is_inner ? Dim(0) : floordiv(start, part.block));
  }
  return element;
}

Status whole_blocks(Dim count, std::string_view what, const Layout::Part& part) {
  if (count.divisible_by(part.block)) return {};
  return bad_input("{} {} in dim {}, within a block of {}", what, count.to_string(), part.dim,
                   part.block);
}

Status check_slice(Op slice, Type operand, Type result, const Layout& layout) {
  for (const Layout::Part& part : layout.parts) {
    const Dim start = slice.dims("start")[static_cast<size_t>(part.dim)];
    HONE_TRY(whole_blocks(start, "it begins at", part));
    HONE_TRY(whole_blocks(start + result.dim(part.dim), "it ends at", part));
  }
  const Type memory = stored_type(layout, operand), taken = stored_type(layout, result);
  const Ints& strides = slice.ints("stride");
  bool is_long = false;  // a part of the dims before takes more than one
  for (int i = 0; i < memory.rank(); ++i) {
    if (!is_long && taken.dim(i).is(1)) continue;
    const int dim = layout.parts[static_cast<size_t>(i)].dim;
    const int64_t stride = strides.empty() ? 1 : strides[static_cast<size_t>(dim)];
    if (stride != 1)
      return bad_input("it takes one of {} elements in dim {}, and they are apart", stride, dim);
    if (is_long && memory.dim(i) != taken.dim(i))
      return bad_input("its elements are apart: it takes {} of {} in dim {}",
                       result.dim(dim).to_string(), operand.dim(dim).to_string(), dim);
    is_long = true;
  }
  const Dim bits_before = first_element(slice, operand, layout) * bits(operand.dtype());
  if (!bits_before.divisible_by(8)) return bad_input("it begins within a byte");
  return {};
}

Status check_opcode(GraphView graph, NodeId node) {
  const OpDef& def = graph.op(node).def();
  if (def.traits.may_be_view) return {};
  return bad_input("a {} has memory of its own; views are reshapes, bitcasts, slices and concats",
                   name(def.opcode));
}

Status check_parts(GraphView graph, NodeId node, const Layout& layout) {
  const int64_t axis = graph.op(node).integer("axis");
  const Type memory = stored_type(layout, graph.type(graph.result(node)));
  for (int i = 0; i < memory.rank(); ++i) {
    const Layout::Part& part = layout.parts[static_cast<size_t>(i)];
    if (part.dim != axis || part.is_inner) {
      if (!memory.dim(i).is(1)) return bad_input("its operands do not lie side by side in it");
      continue;
    }
    for (ValueId v : graph.operands(node)) {
      Status good = whole_blocks(graph.type(v).dim(part.dim), "it ends at", part);
      if (!good.ok())
        return bad_input("'%{}' does not fit: {}", graph.name(v), good.error().what());
    }
    break;
  }
  return {};
}

Status check_operands(GraphView graph, UsersView users, NodeId node) {
  const std::span<const ValueId> operands = graph.operands(node);
  std::unordered_set<uint32_t> seen;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Opcode opcode = graph.opcode(graph.producer(operands[i]));
    const std::string_view name = graph.name(operands[i]);
    if (is_leaf(opcode))
      return bad_input("'%{}' is {}, which lies in other memory", name,
                       is_constant(opcode) ? "a constant" : "an input of the graph");
    if (users.is_output(operands[i])) return bad_input("'%{}' is an output of the graph", name);
    if (!seen.insert(operands[i].index).second) return bad_input("'%{}' is in it twice", name);
    const Type type = graph.type(operands[i]);
    if (!(type.elements() * bits(type.dtype())).divisible_by(8))
      return bad_input("'%{}' ends within a byte", name);
  }
  return {};
}

}  // namespace

bool is_number(GraphView graph, ValueId value) {
  return is_constant(graph.opcode(graph.producer(value))) && graph.type(value).elements().is(1);
}

Status check_view(GraphView graph, UsersView users, NodeId node) {
  const Op op = graph.op(node);
  if (joins_operands(op.opcode())) return check_operands(graph, users, node);
  HONE_TRY(check_opcode(graph, node));
  if (users.is_output(graph.result(node)))
    return bad_input("an output of the graph has memory of its own");
  if (is_number(graph, graph.operands(node)[0]))
    return bad_input("a constant of one element has no memory");
  return {};
}

Status check_side_by_side(GraphView graph, NodeId node, const Layout& layout) {
  const Op op = graph.op(node);
  if (joins_operands(op.opcode())) return check_parts(graph, node, layout);
  if (!takes_part(op.opcode())) return {};
  return check_slice(op, graph.type(graph.operands(node)[0]), graph.type(graph.result(node)),
                     layout);
}

bool keeps_layout(GraphView graph, NodeId node) {
  return takes_part(graph.opcode(node)) || joins_operands(graph.opcode(node));
}

Status check_row_major_view(GraphView graph, UsersView users, NodeId node) {
  HONE_TRY(check_view(graph, users, node));
  return check_side_by_side(graph, node, Layout::row_major(graph.type(graph.result(node)).rank()));
}

Dim view_offset(GraphView graph, NodeId node, const Layout& layout) {
  if (!takes_part(graph.opcode(node))) return 0;
  const Type operand = graph.type(graph.operands(node)[0]);
  return HONE_PLANT(
      view_offset,
      floordiv(first_element(graph.op(node), operand, layout) * bits(operand.dtype()), 8), Dim(0));
}

Dim part_offset(GraphView graph, NodeId concat, size_t operand) {
  Dim offset = 0;
  for (ValueId before : graph.operands(concat).first(operand)) {
    const Type type = graph.type(before);
    offset = offset + floordiv(type.elements() * bits(type.dtype()), 8);
  }
  return HONE_PLANT(part_offset, offset, Dim(0));
}

}  // namespace hone
