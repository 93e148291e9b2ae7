#pragma once

#include "codegen/math/exp.h"

// log and what is made of it. A number is 2^k (1 + f) with whole k and 1 + f in [sqrt(1/2),
// sqrt(2)); its logarithm is k ln 2 + log(1 + f).
//   f32: log(1 + f) = f - f^2/2 + f^3 P(f)
//   f64: log(1 + f) = 2s + s^3 P(s^2), s = f / (2 + f)

namespace hone::math {

// f32: P on [sqrt(1/2) - 1, sqrt(2) - 1], to 2^-27 of log(1 + f).
inline constexpr float kLogF32[] = {0x1.555554p-2f,  -0x1.000226p-2f, 0x1.99a00ap-3f,
                                    -0x1.547248p-3f, 0x1.22da0cp-3f,  -0x1.0d8514p-3f,
                                    0x1.055bbp-3f,   -0x1.38b6eap-4f};
// f64: P on |s| <= 0.17158, to 2^-36 and 2^-60 of log(1 + f).
inline constexpr double kLogShort[] = {0x1.555554fd98d0bp-1, 0x1.999a7a9533cccp-2,
                                       0x1.2438d4809c49bp-2, 0x1.e2f6e7b7593a7p-3};
inline constexpr double kLogF64[] = {
    0x1.5555555555555p-1, 0x1.9999999999dfep-2, 0x1.249249242b4dcp-2, 0x1.c71c7258f11f8p-3,
    0x1.745cde3915143p-3, 0x1.3b20ab06eece6p-3, 0x1.0f5cd410424b7p-3, 0x1.0f62b49588bb5p-3};

template <class T>
inline constexpr T kSqrtHalf = T(0x1.6a09e667f3bcdp-1);

// k ln 2 + log(1 + f)
template <Precision precision, class A, class T>
Number<A, T> log_of(Number<A, T> k, Number<A, T> f) {
  using C = ExpConstants<T>;
  if constexpr (sizeof(T) == 4) {
    Number<A, T> rest = (f * f) * fma(f, polynomial(f, kLogF32), T(-0.5));
    return fma(k, C::kLn2High, f + fma(k, C::kLn2Low, rest));
  } else {
    Number<A, T> s = f / (f + T(2));
    Number<A, T> z = s * s;
    Number<A, T> half = f * f * T(0.5);
    Number<A, T> tail = half;  // log(1 + f) = f - half + s (half + z P)
    if constexpr (precision == Precision::single)
      tail = tail + z * polynomial(z, kLogShort);
    else
      tail = tail + z * polynomial(z, kLogF64);
    return fma(k, C::kLn2High, f - (half - fma(s, tail, k * C::kLn2Low)));
  }
}

template <Precision precision = Precision::full, class A, class T>
Number<A, T> log(Number<A, T> x) {
  using F = Format<T>;
  Split<A, T> parts = split_any<precision>(x, kSqrtHalf<T>);
  Number<A, T> result = log_of<precision>(parts.exponent, parts.fraction - T(1));
  result = select(x == x.with(F::kInfinity), x, result);
  return select(x > T(0), result, select(x == x.with(0), x.with(-F::kInfinity), F::kNan));
}

template <Precision precision = Precision::full, class A, class T>
Number<A, T> log1p(Number<A, T> x) {
  using F = Format<T>;
  Split<A, T> parts = split(x + T(1), kSqrtHalf<T>);
  // f = 2^-k x + (2^-k - 1) rounds once; where 1 is too small to count, 2^-k may be no normal
  // number.
  Number<A, T> shrunk = real(bits(x) - parts.exponent_bits);
  Number<A, T> power = real(F::kOne - parts.exponent_bits);
  power = select(x < T(BitsOf<T>{1} << (F::kFraction + 2)), power, T(0));
  Number<A, T> result = log_of<precision>(parts.exponent, shrunk + (power - T(1)));
  result = select(x == x.with(F::kInfinity), x, with_sign_of(abs(result), x));
  return select(x > T(-1), result, select(x == x.with(-1), x.with(-F::kInfinity), F::kNan));
}

}  // namespace hone::math
