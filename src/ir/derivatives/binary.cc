#include "ir/derivatives/rules.h"

// Elementwise ops of two operands, and select.

namespace hone {

namespace {

// ---- Linear ops ---------------------------------------------------------------------------------

std::vector<Value> add_tangent(const TangentCall& call) {
  return {sum_of(call.tangent(0), call.tangent(1))};
}

std::vector<Value> add_back(const TransposeCall& call) {
  return {call.cotangent(), call.cotangent()};
}

std::vector<Value> sub_tangent(const TangentCall& call) {
  Value left = call.tangent(0), right = call.tangent(1);
  return {!right ? left : !left ? -right : left - right};
}

std::vector<Value> sub_back(const TransposeCall& call) {
  return {call.cotangent(), call.linear[1] ? -call.cotangent() : Value()};
}

std::vector<Value> select_back(const TransposeCall& call) {
  Value ct = call.cotangent(), zero = zeros_of(call.builder, ct.type()), choice = call.operands[0];
  return {Value(), call.linear[1] ? select(choice, ct, zero) : Value(),
          call.linear[2] ? select(choice, zero, ct) : Value()};
}

// ---- Products and quotients ---------------------------------------------------------------------

// The sum of tangents times slopes, which are made only for operands that change.
template <class Left, class Right>
std::vector<Value> by_slopes(const TangentCall& call, const Left& left, const Right& right) {
  Value a = call.tangent(0) ? call.tangent(0) * left() : Value();
  Value b = call.tangent(1) ? call.tangent(1) * right() : Value();
  return {sum_of(a, b)};
}

std::vector<Value> mul_tangent(const TangentCall& call) {
  return by_slopes(call, [&] { return call.operand(1); }, [&] { return call.operand(0); });
}

std::vector<Value> mul_back(const TransposeCall& call) {
  if (call.linear[0] && call.linear[1]) return not_linear(call);
  Value ct = call.cotangent();
  return {call.linear[0] ? ct * call.operands[1] : Value(),
          call.linear[1] ? ct * call.operands[0] : Value()};
}

std::vector<Value> div_tangent(const TangentCall& call) {
  Value r = call.operand(1);
  Value left = call.tangent(0) ? call.tangent(0) / r : Value();
  Value right = call.tangent(1) ? call.tangent(1) * (-call.result() / r) : Value();
  return {sum_of(left, right)};
}

std::vector<Value> div_back(const TransposeCall& call) {
  if (call.linear[1]) return not_linear(call);
  return {call.cotangent() / call.operands[1], Value()};
}

// ---- Others -------------------------------------------------------------------------------------

// lhs - rhs * n with a whole number n, which stays between the jumps.
std::vector<Value> rem_tangent(const TangentCall& call) {
  Value l = call.operand(0), r = call.operand(1);
  Value right =
      call.tangent(1) ? call.tangent(1) * -unary(Opcode::round, (l - call.result()) / r) : Value();
  return {sum_of(call.tangent(0), right)};
}

// x^0 is 1 for every x; at 0 the formula would multiply 0 by infinity. 0^y stays 0 for y > 0.
std::vector<Value> pow_tangent(const TangentCall& call) {
  Value x = call.operand(0), y = call.operand(1);
  auto base_slope = [&] {
    return select(compare("eq", y, 0), zeros_of(call.builder, x.type()),
                  y * binary(Opcode::pow, x, y - 1));
  };
  auto exponent_slope = [&] {
    Value base = select(compare("eq", x, 0), call.builder.full(x.dtype(), x.dims(), 1), x);
    return call.result() * log(base);
  };
  return by_slopes(call, base_slope, exponent_slope);
}

std::vector<Value> atan2_tangent(const TangentCall& call) {
  Value y = call.operand(0), x = call.operand(1), square = x * x + y * y;
  return by_slopes(call, [&] { return x / square; }, [&] { return -y / square; });
}

// The tangent of the operand that is the result; of the first one if they are equal.
std::vector<Value> chosen(const TangentCall& call, std::string_view first_if) {
  Value choice = compare(first_if, call.operand(0), call.operand(1));
  auto tangent = [&](size_t i) {
    return call.tangent(i) ? call.tangent(i) : zeros_of(call.builder, call.operand(i).type());
  };
  return {select(choice, tangent(0), tangent(1))};
}
std::vector<Value> max_tangent(const TangentCall& call) { return chosen(call, "ge"); }
std::vector<Value> min_tangent(const TangentCall& call) { return chosen(call, "le"); }

}  // namespace

const Derivative derivative_add = {.tangent = add_tangent, .transpose = add_back};
const Derivative derivative_sub = {.tangent = sub_tangent, .transpose = sub_back};
const Derivative derivative_select = {.transpose = select_back};
const Derivative derivative_mul = {.tangent = mul_tangent, .transpose = mul_back};
const Derivative derivative_div = {.tangent = div_tangent, .transpose = div_back};
const Derivative derivative_rem = {.tangent = rem_tangent};
const Derivative derivative_pow = {.tangent = pow_tangent};
const Derivative derivative_max = {.tangent = max_tangent};
const Derivative derivative_min = {.tangent = min_tangent};
const Derivative derivative_atan2 = {.tangent = atan2_tangent};

}  // namespace hone
