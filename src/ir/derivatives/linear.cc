#include "ir/derivatives/rules.h"

namespace hone {

std::vector<Value> linear_tangents(const TangentCall& call) {
  std::vector<Value> operands(call.operands.begin(), call.operands.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || !is_differentiable(operands[i].type())) continue;
    operands[i] = call.tangent(i) ? call.tangent(i) : zeros_of(call.builder, operands[i].type());
  }
  return call.builder.ops(call.op, operands);
}

std::vector<Value> not_linear(const TransposeCall& call) {
  call.builder.fail(bad_input("'{}' is not a linear function of its operands", call.op.name()));
  return std::vector<Value>(call.types.size());
}

}  // namespace hone
