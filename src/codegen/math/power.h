#pragma once

#include "codegen/math/log.h"

// rsqrt and pow.

namespace hone::math {

template <class A, class T>
Number<A, T> rsqrt(Number<A, T> x) {
  return T(1) / sqrt(x);
}

// The part of log(1 + f) = 2s + s^3 (2/3 + z P(z)), z = s^2, on |s| <= 0.17158, to 2^-64.
inline constexpr double kLogTail[] = {
    0x1.9999999999b0bp-2, 0x1.249249245b82ep-2, 0x1.c71c7228f2b73p-3, 0x1.745ceb3da67bfp-3,
    0x1.3b1eb3b69ff44p-3, 0x1.0f849a496d4c3p-3, 0x1.0e1a6fe43f0d1p-3};

// a b, where the error of the second half does not count.
template <class A>
Pair<A, double> product(const Pair<A, double>& a, const Pair<A, double>& b) {
  Pair<A, double> high = exact_product(a.high, b.high);
  return {high.high, high.low + (a.high * b.low + a.low * b.high)};
}

// The logarithm of a positive finite x to 2^-63: to that of the highest number, pow multiplies its
// error by 2^10.
template <class A>
Pair<A, double> exact_log(F64<A> x) {
  using C = ExpConstants<double>;
  Split<A, double> parts = split_any<Precision::full>(x, kSqrtHalf<double>);
  F64<A> f = parts.fraction - 1.0;
  F64<A> k = parts.exponent;
  // s = f / (2 + f), and what the quotient leaves.
  Pair<A, double> divisor = sum_of_ordered(x.with(2), f);
  F64<A> quotient = f / divisor.high;
  Pair<A, double> back = exact_product(quotient, divisor.high);
  F64<A> rest = ((f - back.high) - back.low) - quotient * divisor.low;
  Pair<A, double> s = {quotient, rest / divisor.high};
  Pair<A, double> z = product(s, s);
  Pair<A, double> factor = sum_of_ordered(x.with(2.0 / 3), z.high * polynomial(z.high, kLogTail));
  factor.low = factor.low + 0x1.5555555555555p-55;  // of 2/3
  Pair<A, double> cubic = product(product(s, z), factor);
  Pair<A, double> first = sum_of_ordered(k * C::kLn2High, s.high * 2.0);
  Pair<A, double> second = sum_of_ordered(first.high, cubic.high);
  F64<A> low = fma(k, C::kLn2Low, fma(s.low, 2.0, cubic.low + (first.low + second.low)));
  return sum_of_ordered(second.high, low);
}

// |x|^y, NaN where it depends on the sign of 0 * infinity.
template <Precision precision, class A>
F64<A> pow_of_size(F64<A> size, F64<A> y) {
  using F = Format<double>;
  if constexpr (precision == Precision::single) {
    return exp<precision>(y * log<precision>(size));
  } else {
    using C = ExpConstants<double>;
    // Beyond, the result is 0, 1 or infinite.
    F64<A> exponent = at_least(at_most(y, 0x1p65), -0x1p65);
    Pair<A, double> log_size = exact_log(size);
    Pair<A, double> power = exact_product(exponent, log_size.high);
    power.low = power.low + exponent * log_size.low;
    Reduced<A, double> reduced = reduce(at_least(at_most(power.high, C::kHighest), C::kLowest));
    reduced.r = reduced.r + select(abs(power.high) < 0x1p11, power.low, 0.0);
    F64<A> result = scale(reduced, exp_minus_one<precision>(reduced.r));
    F64<A> at_zero = select(y < 0.0, y.with(F::kInfinity), 0.0);
    F64<A> at_infinity = select(y < 0.0, y.with(0), F::kInfinity);
    result = select(size == size.with(0), at_zero, result);
    result = select(size == size.with(F::kInfinity), at_infinity, result);
    return select((size == size) & (y == y), result, F::kNan);
  }
}

template <Precision precision = Precision::full, class A>
F64<A> pow(F64<A> x, F64<A> y) {
  using F = Format<double>;
  F64<A> size = abs(x);
  F64<A> result = select(size == size.with(1), 1.0, pow_of_size<precision>(size, y));
  F64<A> half = y * 0.5;
  Truth<A> whole = round_zero(y) == y;  // infinities, too
  Truth<A> odd = whole & !(round_zero(half) == half);
  result = real(bits(result) ^ (bits(select(odd, x, 0.0)) & F::kSign));
  Truth<A> undefined = (x < 0.0) & (x > -F::kInfinity) & !whole;
  result = select(undefined, F::kNan, result);
  return select((y == y.with(0)) | (x == x.with(1)), 1.0, result);
}

}  // namespace hone::math
