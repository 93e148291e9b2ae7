#include "codegen/emit/functions.h"

#include "codegen/emit/math_algebra.h"
#include "codegen/math/functions.h"

namespace hone::code {

namespace {

template <bool kHasFma, class T>
Value apply(Instructions& code, Opcode opcode, std::span<const Value> x) {
  using Algebra = MathAlgebra<kHasFma>;
  Algebra algebra(code, x[0]);
  auto number = [&](Value value) { return math::Number<Algebra, T>{&algebra, value}; };
  if (x.size() == 1) return math::apply(opcode, number(x[0])).value;
  return math::apply(opcode, number(x[0]), number(x[1])).value;
}

template <bool kHasFma>
Value apply(Instructions& code, Opcode opcode, std::span<const Value> x) {
  if (Instructions::width(x[0]) == 32) return apply<kHasFma, float>(code, opcode, x);
  return apply<kHasFma, double>(code, opcode, x);
}

}  // namespace

std::optional<Value> function(Instructions& code, bool has_fma, Opcode opcode,
                              std::span<const Value> operands) {
  if (math::operands_of(opcode) != static_cast<int>(operands.size())) return std::nullopt;
  return has_fma ? apply<true>(code, opcode, operands) : apply<false>(code, opcode, operands);
}

}  // namespace hone::code
