#include "ir/derivatives/rules.h"

// Elementwise ops of one operand: the tangent times the slope. A slope is one value, so that one
// value per op is stored for the way back.

namespace hone {

namespace {

using Slope = Value (*)(Value x, Value y);  // y: the result

template <Slope slope>
std::vector<Value> scaled(const TangentCall& call) {
  return {call.tangent(0) * slope(call.operand(0), call.result())};
}

template <Slope slope>
constexpr Derivative sloped = {.tangent = scaled<slope>};

Value square(Value x) { return x * x; }

Value sign_of(Value x, Value) { return unary(Opcode::sign, x); }
Value itself(Value, Value y) { return y; }
Value one_above(Value, Value y) { return y + 1; }
Value inverse(Value x, Value) { return 1 / x; }
Value inverse_above(Value x, Value) { return 1 / (x + 1); }
Value half_inverse(Value, Value y) { return 0.5 / y; }
Value rsqrt_slope(Value x, Value y) { return -0.5 * y / x; }
Value cos_of(Value x, Value) { return unary(Opcode::cos, x); }
Value minus_sin(Value x, Value) { return -unary(Opcode::sin, x); }
Value tan_slope(Value, Value y) { return 1 + square(y); }
Value asin_slope(Value x, Value) { return rsqrt((1 - x) * (1 + x)); }
Value acos_slope(Value x, Value y) { return -asin_slope(x, y); }
Value atan_slope(Value x, Value) { return 1 / (1 + square(x)); }
Value cosh_of(Value x, Value) { return unary(Opcode::cosh, x); }
Value sinh_of(Value x, Value) { return unary(Opcode::sinh, x); }
Value tanh_slope(Value, Value y) { return (1 - y) * (1 + y); }
Value asinh_slope(Value x, Value) { return rsqrt(1 + square(x)); }
Value acosh_slope(Value x, Value) { return rsqrt(x - 1) * rsqrt(x + 1); }
Value atanh_slope(Value x, Value) { return 1 / ((1 - x) * (1 + x)); }
Value logistic_slope(Value, Value y) { return y * (1 - y); }
Value erf_slope(Value x, Value) { return 1.1283791670955126 * exp(-square(x)); }  // 2 / sqrt(pi)

std::vector<Value> neg_back(const TransposeCall& call) { return {-call.cotangent()}; }
std::vector<Value> cast_back(const TransposeCall& call) {
  return {cast(call.cotangent(), call.type(0).dtype())};
}

}  // namespace

const Derivative derivative_neg = {.transpose = neg_back};
const Derivative derivative_cast = {.transpose = cast_back};
const Derivative derivative_abs = sloped<sign_of>;
const Derivative derivative_exp = sloped<itself>;
const Derivative derivative_expm1 = sloped<one_above>;
const Derivative derivative_log = sloped<inverse>;
const Derivative derivative_log1p = sloped<inverse_above>;
const Derivative derivative_sqrt = sloped<half_inverse>;
const Derivative derivative_rsqrt = sloped<rsqrt_slope>;
const Derivative derivative_sin = sloped<cos_of>;
const Derivative derivative_cos = sloped<minus_sin>;
const Derivative derivative_tan = sloped<tan_slope>;
const Derivative derivative_asin = sloped<asin_slope>;
const Derivative derivative_acos = sloped<acos_slope>;
const Derivative derivative_atan = sloped<atan_slope>;
const Derivative derivative_sinh = sloped<cosh_of>;
const Derivative derivative_cosh = sloped<sinh_of>;
const Derivative derivative_tanh = sloped<tanh_slope>;
const Derivative derivative_asinh = sloped<asinh_slope>;
const Derivative derivative_acosh = sloped<acosh_slope>;
const Derivative derivative_atanh = sloped<atanh_slope>;
const Derivative derivative_logistic = sloped<logistic_slope>;
const Derivative derivative_erf = sloped<erf_slope>;

}  // namespace hone
