#pragma once

#include "codegen/math/number.h"

// exp and what is made of it. x = k ln 2 + r with whole k and |r| <= 0.3467 (ln 2 / 2 and what
// rounding adds), and e^r - 1 = r + r^2 P(r).

namespace hone::math {

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits: k times it is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kHighest = 89;   // e^x is infinite
  static constexpr float kLowest = -104;  // e^x is zero
  static constexpr int kFar = 32;         // how far scale() stays from subnormals
};
template <>
struct ExpConstants<double> {
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42fefa3p-1;  // 41 bits
  static constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
  static constexpr double kHighest = 710;
  static constexpr double kLowest = -746;
  static constexpr int kFar = 128;
};

// P on |r| <= 0.3467. Relative to e^r - 1: f32 to 2^-26, short to 2^-32, f64 to 2^-60.
inline constexpr float kExpF32[] = {0x1.fffffep-2f, 0x1.5554bp-3f, 0x1.555674p-5f, 0x1.12279cp-7f,
                                    0x1.6bec06p-10f};
inline constexpr double kExpShort[] = {0x1.00000027e19dp-1,   0x1.555555891f581p-3,
                                       0x1.5554adbcc376dp-5,  0x1.11108f79129e6p-7,
                                       0x1.6d74a4ba49898p-10, 0x1.a1a19035ccb8fp-13};
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555ap-5,  0x1.111111110f6a5p-7,
    0x1.6c16c16c14437p-10, 0x1.a01a01afea0d0p-13, 0x1.a01a01b0be726p-16, 0x1.71ddf845301a0p-19,
    0x1.27e4c5914b473p-22, 0x1.af5edb694e5cfp-26, 0x1.1f957b6ef0fb4p-29};

template <Precision precision, class A, class T>
Number<A, T> exp_polynomial(Number<A, T> r) {
  if constexpr (sizeof(T) == 4)
    return polynomial(r, kExpF32);
  else if constexpr (precision == Precision::single)
    return polynomial(r, kExpShort);
  else
    return polynomial(r, kExpF64);
}

// x = k ln 2 + r.
template <class A, class T>
struct Reduced {
  Number<A, T> r;
  Number<A, BitsOf<T>> shifted;  // k where a format has the exponent, without offset

  // 2^(k + more), where that is a normal number.
  Number<A, T> power(int more = 0) const {
    using F = Format<T>;
    return real(shifted + (F::kOne + (BitsOf<T>(more) << F::kFraction)));
  }
};

// |x| < 2000 (f32: 200).
template <class A, class T>
Reduced<A, T> reduce(Number<A, T> x) {
  using C = ExpConstants<T>;
  using F = Format<T>;
  Number<A, T> whole = fma(x, C::kLog2E, F::kWhole);
  Number<A, T> k = whole - F::kWhole;
  Number<A, T> r = fma(k, -C::kLn2Low, fma(k, -C::kLn2High, x));
  return {r, bits(whole) << F::kFraction};
}

// e^r - 1
template <Precision precision, class A, class T>
Number<A, T> exp_minus_one(Number<A, T> r) {
  return fma(r * r, exp_polynomial<precision>(r), r);
}

// 2^k (1 + minus_one), from infinity to subnormals to zero.
template <class A, class T>
Number<A, T> scale(const Reduced<A, T>& reduced, Number<A, T> minus_one) {
  using F = Format<T>;
  // 2^k may be no normal number though the result is one: go part of the way, then the rest.
  const BitsOf<T> far = BitsOf<T>{ExpConstants<T>::kFar} << F::kFraction;
  const T up = std::bit_cast<T>(F::kOne + far);
  Truth<A> negative = real(reduced.shifted) < T(0);  // k is; it has no bits that make it NaN
  Number<A, BitsOf<T>> part = select(negative, F::kOne + far, reduced.shifted.with(F::kOne - far));
  Number<A, T> rest = select(negative, 1 / up, minus_one.with(up));
  Number<A, T> power = real(reduced.shifted + part);
  return fma(power, minus_one, power) * rest;
}

template <Precision precision = Precision::full, class A, class T>
Number<A, T> exp(Number<A, T> x) {
  using C = ExpConstants<T>;
  // Bits below all numbers are not computed on the way: results that are not normal cost
  // more than everything else, and masks of attention are full of them.
  Truth<A> vanishes = x < C::kLowest;
  Reduced<A, T> reduced = reduce(select(vanishes, T(0), at_most(x, C::kHighest)));
  return select(vanishes, T(0), scale(reduced, exp_minus_one<precision>(reduced.r)));
}

// e^x / 2 for 0 <= x <= 710.5 (f32: 89), where e^x may be above all numbers.
template <class A, class T>
Number<A, T> half_exp(const Reduced<A, T>& reduced, Number<A, T> minus_one) {
  Number<A, T> power = reduced.power(-2);
  return fma(power, minus_one, power) * T(2);
}

// e^x - 1 for x that is at most ExpConstants::kHighest and so high that 2^k is a normal number.
template <class A, class T>
Number<A, T> expm1_of(const Reduced<A, T>& reduced, Number<A, T> minus_one) {
  Number<A, T> half = reduced.power(-1);  // 2^k itself may be above all numbers
  return fma(half, minus_one, half - T(0.5)) * T(2);
}

template <Precision precision = Precision::full, class A, class T>
Number<A, T> expm1(Number<A, T> x) {
  Reduced<A, T> reduced = reduce(at_least(at_most(x, ExpConstants<T>::kHighest), T(-40)));
  return with_sign_of(expm1_of(reduced, exp_minus_one<precision>(reduced.r)), x);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, so that nothing overflows or is lost.
template <Precision precision = Precision::full, class A, class T>
Number<A, T> logistic(Number<A, T> x) {
  using C = ExpConstants<T>;
  using F = Format<T>;
  Truth<A> vanishes = abs(x) > -C::kLowest;  // e^-|x|, as in exp
  Reduced<A, T> reduced = reduce(select(vanishes, T(0), negate(abs(x))));
  Number<A, T> minus_one = exp_minus_one<precision>(reduced.r);
  Number<A, T> power = reduced.power(C::kFar);  // 2^k may be no normal number
  const T back = std::bit_cast<T>(F::kOne - (BitsOf<T>{C::kFar} << F::kFraction));
  Number<A, T> e = select(vanishes, T(0), fma(power, minus_one, power) * back);
  Number<A, T> sum = e + T(1);
  // The numerator corrects what the sum lost; 3/4 stands for 1 / sum.
  Number<A, T> lost = e - (sum - T(1));
  Number<A, T> corrected = fma(power, fma(lost, T(-0.75), minus_one), power) * back;
  return select(x < T(0), select(vanishes, T(0), corrected), T(1)) / sum;
}

}  // namespace hone::math
