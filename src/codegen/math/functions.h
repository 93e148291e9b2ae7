#pragma once

#include "base/error.h"
#include "codegen/math/erf.h"
#include "codegen/math/hyperbolic.h"
#include "codegen/math/inverse.h"
#include "codegen/math/power.h"
#include "codegen/math/rem.h"
#include "codegen/math/trigonometric.h"
#include "ir/op.h"

// The functions that have no instruction, by opcode. They mean what the op table says, zeros,
// infinities, NaN and subnormals included, with f32 within 2 units in the last place and f64 within
// 4 (accuracy.h measures it). The functions round and rem are exact.

namespace hone::math {

// HONE_MATH(opcode, operands, how f32 is computed: in f32 itself or in f64, what it is measured
// against: a formula of x and y in a wider type)
#define HONE_MATH_FUNCTIONS(HONE_MATH)              \
  HONE_MATH(exp, 1, itself, std::exp(x))            \
  HONE_MATH(expm1, 1, itself, std::expm1(x))        \
  HONE_MATH(log, 1, itself, std::log(x))            \
  HONE_MATH(log1p, 1, itself, std::log1p(x))        \
  HONE_MATH(rsqrt, 1, itself, 1 / std::sqrt(x))     \
  HONE_MATH(sin, 1, in_f64, std::sin(x))            \
  HONE_MATH(cos, 1, in_f64, std::cos(x))            \
  HONE_MATH(tan, 1, in_f64, std::tan(x))            \
  HONE_MATH(asin, 1, in_f64, std::asin(x))          \
  HONE_MATH(acos, 1, in_f64, std::acos(x))          \
  HONE_MATH(atan, 1, in_f64, std::atan(x))          \
  HONE_MATH(sinh, 1, in_f64, std::sinh(x))          \
  HONE_MATH(cosh, 1, in_f64, std::cosh(x))          \
  HONE_MATH(tanh, 1, itself, std::tanh(x))          \
  HONE_MATH(asinh, 1, in_f64, std::asinh(x))        \
  HONE_MATH(acosh, 1, in_f64, std::acosh(x))        \
  HONE_MATH(atanh, 1, in_f64, std::atanh(x))        \
  HONE_MATH(logistic, 1, itself, exact_logistic(x)) \
  HONE_MATH(erf, 1, itself, std::erf(x))            \
  HONE_MATH(round, 1, itself, std::nearbyint(x))    \
  HONE_MATH(pow, 2, in_f64, std::pow(x, y))         \
  HONE_MATH(atan2, 2, in_f64, std::atan2(x, y))     \
  HONE_MATH(rem, 2, in_f64, std::fmod(x, y))

template <class A, class T>
Number<A, T> round(Number<A, T> x) {
  return round_even(x);
}

// 0: not one of them.
constexpr int operands_of(Opcode opcode) {
#define HONE_MATH(name, operands, how, exact) \
  if (opcode == Opcode::name) return operands;
  HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
  return 0;
}

// The function of an opcode with as many operands (operands_of), of one width: a float or a double.
template <class A, class T, class... Others>
Number<A, T> apply(Opcode opcode, Number<A, T> x, Others... others) {
#define HONE_MATH_itself(name) return name(x, others...);
#define HONE_MATH_in_f64(name)                                          \
  if constexpr (sizeof(T) == 4)                                         \
    return narrow(name<Precision::single>(widen(x), widen(others)...)); \
  else                                                                  \
    return name(x, others...);
#define HONE_MATH(name, operands, how, exact)        \
  if constexpr (operands == 1 + sizeof...(Others)) { \
    if (opcode == Opcode::name) {                    \
      HONE_MATH_##how(name)                          \
    }                                                \
  }
  HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
#undef HONE_MATH_in_f64
#undef HONE_MATH_itself
  HONE_CHECK(false, "{} is no function of {} numbers", static_cast<int>(opcode),
             1 + sizeof...(Others));
  return x;
}

}  // namespace hone::math
