#pragma once

#include "codegen/math/log.h"

// The hyperbolic functions and their inverses.

namespace hone::math {

// sinh and cosh: one where |x| < 1, so that nothing cancels; e^x / 2 +- e^-x / 2 beyond.
template <Precision precision = Precision::full, class A>
F64<A> sinh(F64<A> x) {
  F64<A> size = abs(x);
  Reduced<A, double> reduced = reduce(at_most(size, 710.5));
  F64<A> minus_one = exp_minus_one<precision>(reduced.r);
  F64<A> e = expm1_of(reduced, minus_one);
  F64<A> half = half_exp(reduced, minus_one);
  Truth<A> small = size < 1.0;
  F64<A> ratio = select(small, e, -0.25) / select(small, e + 1.0, half);
  return with_sign_of(select(small, (e + ratio) * 0.5, half + ratio), x);
}

template <Precision precision = Precision::full, class A>
F64<A> cosh(F64<A> x) {
  Reduced<A, double> reduced = reduce(at_most(abs(x), 710.5));
  F64<A> half = half_exp(reduced, exp_minus_one<precision>(reduced.r));
  return half + 0.25 / half;
}

template <class A>
F64<A> tanh(F64<A> x) {
  Reduced<A, double> reduced = reduce(at_most(abs(x), 22.0) * 2.0);
  F64<A> e = expm1_of(reduced, exp_minus_one<Precision::full>(reduced.r));
  return with_sign_of(e / (e + 2.0), x);
}

// tanh x = x + x z P(z), z = x^2, on |x| <= 0.55, to 2^-28 of it.
inline constexpr float kTanhF32[] = {-0x1.55554cp-2f, 0x1.110d3cp-3f, -0x1.b92bbap-5f,
                                     0x1.59568ap-6f, -0x1.9bba76p-8f};

template <class A>
F32<A> tanh(F32<A> x) {
  F32<A> size = at_most(abs(x), 9.1f);
  F32<A> z = size * size;
  F32<A> small = fma(size * z, polynomial(z, kTanhF32), size);
  Reduced<A, float> reduced = reduce(size * 2.0f);
  F32<A> power = reduced.power();
  F32<A> e = fma(power, exp_minus_one<Precision::full>(reduced.r), power);
  F32<A> large = 1.0f - 2.0f / (e + 1.0f);
  return with_sign_of(select(size < 0.55f, small, large), x);
}

// The logarithm of x + sqrt(x^2 +- 1), by `small`, what that exceeds 1, or from `size` alone where
// 1 is too small to count.
template <Precision precision, class A>
F64<A> log_of_sum(F64<A> small, F64<A> size) {
  Truth<A> huge = size > 0x1p54;
  F64<A> result = log1p<precision>(select(huge, size, small));
  return result + select(huge, size.with(0x1.62e42fefa39efp-1), 0.0);
}

template <Precision precision = Precision::full, class A>
F64<A> asinh(F64<A> x) {
  F64<A> size = abs(x);
  F64<A> square = size * size;
  F64<A> small = size + square / (sqrt(square + 1.0) + 1.0);
  return with_sign_of(log_of_sum<precision>(small, size), x);
}

template <Precision precision = Precision::full, class A>
F64<A> acosh(F64<A> x) {
  F64<A> above = x - 1.0;
  F64<A> result = log_of_sum<precision>(above + sqrt(above * (x + 1.0)), x);
  return select(x < 1.0, Format<double>::kNan, result);
}

template <Precision precision = Precision::full, class A>
F64<A> atanh(F64<A> x) {
  F64<A> size = abs(x);
  F64<A> ratio = size * 2.0 / (1.0 - size);
  return with_sign_of(log1p<precision>(ratio) * 0.5, x);
}

}  // namespace hone::math
