#include "ir/derivatives/rules.h"

// Composites whose derivative is simpler than that of their expansion. The others have that one.

namespace hone {

namespace {

// The result tells as well as the operand, and is read by the ops behind it anyway.
std::vector<Value> relu_tangent(const TangentCall& call) {
  Value t = call.tangent(0);
  return {select(compare("gt", call.result(), 0), t, zeros_of(call.builder, t.type()))};
}

std::vector<Value> softplus_tangent(const TangentCall& call) {
  return {call.tangent(0) * logistic(call.operand(0))};
}

// With the maximum, which changes nothing, left out.
std::vector<Value> softmax_tangent(const TangentCall& call) {
  Value weighted = call.tangent(0) * call.result();
  const int64_t axis = call.op.integer("axis");
  return {weighted - call.result() * reduce_sum(weighted, {axis}, true)};
}

std::vector<Value> log_softmax_tangent(const TangentCall& call) {
  Value t = call.tangent(0);
  const int64_t axis = call.op.integer("axis");
  return {t - reduce_sum(t * exp(call.result()), {axis}, true)};
}

}  // namespace

const Derivative derivative_relu = {.tangent = relu_tangent};
const Derivative derivative_softplus = {.tangent = softplus_tangent};
const Derivative derivative_softmax = {.tangent = softmax_tangent};
const Derivative derivative_log_softmax = {.tangent = log_softmax_tangent};

}  // namespace hone
