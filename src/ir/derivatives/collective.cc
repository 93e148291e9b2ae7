#include "ir/derivatives/rules.h"

// Collectives. All devices derive the same graph, and each has a loss of its own: what comes back
// is the derivative of the sum of all losses. Sums and moves are linear functions of the values of
// all devices together.

namespace hone {

namespace {

Attrs group_of(Op op) {
  return {{"group_size", op.integer("group_size")}, {"groups", op.ints("groups")}};
}

Attrs with(Attrs attrs, std::string_view name, AttrValue value) {
  attrs.emplace_back(name, std::move(value));
  return attrs;
}

// ---- Sums and extremes --------------------------------------------------------------------------

Value summed(const TangentCall& call, Value x) {
  Attrs attrs = with(group_of(call.op), "kind", "sum");
  if (call.op.opcode() == Opcode::reduce_scatter)
    attrs = with(std::move(attrs), "axis", call.op.integer("axis"));
  return call.builder.op(call.op.opcode(), {x}, attrs);
}

// An extreme follows the mean of the members that have it.
std::vector<Value> combined_tangent(const TangentCall& call) {
  const std::string& kind = call.op.word("kind");
  if (kind == "sum") return linear_tangents(call);
  if (kind == "product") {
    call.builder.fail(unsupported("'{}' by product has no derivative", call.op.name())
                          .with_hint("the exponential of a sum of logarithms has one"));
    return std::vector<Value>(1);
  }
  Value x = call.operand(0), extreme = call.result();
  if (call.op.opcode() == Opcode::reduce_scatter)
    extreme = call.builder.op(Opcode::all_gather, {extreme},
                              with(group_of(call.op), "axis", call.op.integer("axis")));
  Value is_extreme = compare("eq", x, extreme);
  Value tangent = select(is_extreme, call.tangent(0), zeros_of(call.builder, x.type()));
  return {summed(call, tangent) / summed(call, cast(is_extreme, x.dtype()))};
}

std::vector<Value> all_reduce_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  return call.builder.ops(call.op, {{call.cotangent()}});
}

std::vector<Value> reduce_scatter_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  return {call.builder.op(Opcode::all_gather, {call.cotangent()},
                          with(group_of(call.op), "axis", call.op.integer("axis")))};
}

// ---- Moves --------------------------------------------------------------------------------------

std::vector<Value> all_gather_back(const TransposeCall& call) {
  const Attrs attrs = with(with(group_of(call.op), "axis", call.op.integer("axis")), "kind", "sum");
  return {call.builder.op(Opcode::reduce_scatter, {call.cotangent()}, attrs)};
}

std::vector<Value> all_to_all_back(const TransposeCall& call) {
  const Attrs attrs = with(with(group_of(call.op), "split_axis", call.op.integer("concat_axis")),
                           "concat_axis", call.op.integer("split_axis"));
  return {call.builder.op(Opcode::all_to_all, {call.cotangent()}, attrs)};
}

std::vector<Value> permute_back(const TransposeCall& call) {
  Ints pairs = call.op.ints("pairs");
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) std::swap(pairs[i], pairs[i + 1]);
  return {call.builder.op(Opcode::permute, {call.cotangent()},
                          with(group_of(call.op), "pairs", pairs))};
}

}  // namespace

const Derivative derivative_all_reduce = {.tangent = combined_tangent,
                                          .transpose = all_reduce_back};
const Derivative derivative_reduce_scatter = {.tangent = combined_tangent,
                                              .transpose = reduce_scatter_back};
const Derivative derivative_all_gather = {.transpose = all_gather_back};
const Derivative derivative_all_to_all = {.transpose = all_to_all_back};
const Derivative derivative_permute = {.transpose = permute_back};

}  // namespace hone
