#include "ir/softmax.h"

#include "ir/op_def.h"

namespace hone {

namespace {

Opcode maker(const Graph& graph, ValueId value) { return graph.opcode(graph.producer(value)); }
ValueId operand_of(const Graph& graph, ValueId value, size_t i) {
  return graph.operands(graph.producer(value))[i];
}

// An integer is another number: exponentials below 1 are 0 then.
bool is_cast_of_reals(const Graph& graph, ValueId value) {
  return maker(graph, value) == Opcode::cast && is_real(graph.type(value).dtype()) &&
         is_real(graph.type(operand_of(graph, value, 0)).dtype());
}

ValueId before_casts_and_moves(const Graph& graph, ValueId value) {
  const auto moves = [](Opcode opcode) {
    return class_of(opcode) == OpClass::movement && !op_def(opcode).traits.is_piecewise;
  };
  while (is_cast_of_reals(graph, value) || moves(maker(graph, value)))
    value = operand_of(graph, value, 0);
  return value;
}

// True if the value combines `of` in this way along one axis, or along this one.
bool is_reduced(const Graph& graph, ValueId value, std::string_view kind, ValueId of,
                std::optional<int>& axis) {
  if (maker(graph, value) != Opcode::reduce) return false;
  const Op op = graph.op(graph.producer(value));
  const Ints& axes = op.ints("axes");
  if (op.word("kind") != kind || axes.size() != 1) return false;
  if (before_casts(graph, operand_of(graph, value, 0)) != of) return false;
  if (axis && *axis != axes[0]) return false;
  axis = static_cast<int>(axes[0]);
  return true;
}

std::optional<ValueId> sums_of(const Graph& graph, ValueId exponentials, std::optional<int> axis) {
  for (NodeId node : graph.nodes())
    for (ValueId result : graph.results(node))
      if (is_reduced(graph, result, "sum", exponentials, axis)) return result;
  return std::nullopt;
}

}  // namespace

ValueId before_casts(const Graph& graph, ValueId value) {
  while (is_cast_of_reals(graph, value)) value = operand_of(graph, value, 0);
  return value;
}

std::optional<SoftmaxParts> softmax_of(const Graph& graph, ValueId weights) {
  SoftmaxParts parts = {.weights = weights};
  ValueId e = before_casts(graph, weights);
  parts.is_divided = maker(graph, e) == Opcode::div;
  if (parts.is_divided) {
    parts.sums = before_casts_and_moves(graph, operand_of(graph, e, 1));
    e = before_casts(graph, operand_of(graph, e, 0));
  }
  if (maker(graph, e) != Opcode::exp) return std::nullopt;
  const ValueId distance = before_casts(graph, operand_of(graph, e, 0));
  if (maker(graph, distance) != Opcode::sub) return std::nullopt;
  parts.scores = before_casts(graph, operand_of(graph, distance, 0));
  parts.maxima = before_casts_and_moves(graph, operand_of(graph, distance, 1));
  std::optional<int> axis;
  if (!is_reduced(graph, parts.maxima, "max", parts.scores, axis)) return std::nullopt;
  parts.axis = *axis;
  if (parts.is_divided)
    return is_reduced(graph, parts.sums, "sum", e, axis) ? std::optional(parts) : std::nullopt;
  const std::optional<ValueId> sums = sums_of(graph, e, axis);
  if (!sums) return std::nullopt;
  parts.sums = *sums;
  return parts;
}

}  // namespace hone
