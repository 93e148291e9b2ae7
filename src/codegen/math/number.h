#pragma once

#include <limits>

#include "codegen/math/algebra.h"

// Shared by the functions: formats, signs, polynomials, whole numbers by way of bits, and sums and
// products that keep their rounding errors.

namespace hone::math {

// How exact a function in f64 has to be: `single` for results that are rounded to f32 and operands
// that are numbers of f32. It takes shorter polynomials.
enum class Precision : uint8_t { single, full };

template <class T>
struct Format {
  using Bits = BitsOf<T>;
  static constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;       // bits below the exponent
  static constexpr Bits kOne = std::bit_cast<Bits>(T(1));          // the exponent of 1
  static constexpr Bits kSign = std::numeric_limits<Bits>::min();  // the bit of the sign
  // A real whose last bit counts ones: adding it rounds to a whole number, to be seen in the bits.
  static constexpr T kWhole = T(3) * T(Bits{1} << (kFraction - 1));
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
};

template <class A, class T>
Number<A, T> abs(Number<A, T> x) {
  return real(bits(x) & ~Format<T>::kSign);
}
template <class A, class T>
Number<A, T> negate(Number<A, T> x) {
  return real(bits(x) ^ Format<T>::kSign);
}
// The sign of a result that is not negative; that of a zero is seen, too.
template <class A, class T>
Number<A, T> with_sign_of(Number<A, T> result, Number<A, T> x) {
  return real(bits(result) | (bits(x) & Format<T>::kSign));
}
template <class A, class T>
Truth<A> sign_is_set(Number<A, T> x) {
  return with_sign_of(x.with(1), x) < T(0);
}
// x where it is not above the limit, NaN included.
template <class A, class T>
Number<A, T> at_most(Number<A, T> x, std::type_identity_t<T> limit) {
  return select(x > limit, limit, x);
}
template <class A, class T>
Number<A, T> at_least(Number<A, T> x, std::type_identity_t<T> limit) {
  return select(x < limit, limit, x);
}

// c[0] + c[1] x + c[2] x^2 + ...
template <class A, class T, size_t N>
Number<A, T> polynomial(Number<A, T> x, const T (&c)[N]) {
  Number<A, T> sum = fma(x, c[N - 1], c[N - 2]);
  for (size_t i = N - 2; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}

// The exponent of x, a positive finite number, and the fraction such that x = 2^exponent * fraction
// and the fraction lies in [least, 2 least). Not for subnormals.
template <class A, class T>
struct Split {
  Number<A, T> exponent, fraction;
  Number<A, BitsOf<T>> exponent_bits;  // where a format has the exponent, without offset
};
template <class A, class T>
Split<A, T> split(Number<A, T> x, T least) {
  using F = Format<T>;
  using Bits = BitsOf<T>;
  const Bits least_bits = std::bit_cast<Bits>(least);
  const Bits fraction_mask = (Bits{1} << F::kFraction) - 1;
  Number<A, Bits> shifted = bits(x) + (F::kOne - least_bits);
  // The offset exponent as the last bits of 2^kFraction.
  const T counter = T(Bits{1} << F::kFraction);
  Number<A, T> counted = real((shifted >> F::kFraction) | std::bit_cast<Bits>(counter));
  return {.exponent = counted - (counter + T(F::kOne >> F::kFraction)),
          .fraction = real((shifted & fraction_mask) + least_bits),
          .exponent_bits = (shifted & ~fraction_mask) - F::kOne};
}

// The same for subnormals, too.
template <Precision precision, class A, class T>
Split<A, T> split_any(Number<A, T> x, T least) {
  if constexpr (precision == Precision::single && sizeof(T) == 8) {
    return split(x, least);  // a subnormal of f32 is none of f64
  } else {
    const int up = Format<T>::kFraction + 2;
    Truth<A> subnormal = x < std::numeric_limits<T>::min();
    Split<A, T> result = split(select(subnormal, x * T(BitsOf<T>{1} << up), x), least);
    result.exponent = result.exponent - select(subnormal, x.with(T(up)), T(0));
    return result;
  }
}

// A sum of two numbers that is meant to more digits than one of them has.
template <class A, class T>
struct Pair {
  Number<A, T> high, low;
};
// Exact. |a| >= |b|, or a = 0.
template <class A, class T>
Pair<A, T> sum_of_ordered(Number<A, T> a, Number<A, T> b) {
  Number<A, T> sum = a + b;
  return {sum, b - (sum - a)};
}
// Exact.
template <class A, class T>
Pair<A, T> exact_sum(Number<A, T> a, Number<A, T> b) {
  Number<A, T> sum = a + b;
  Number<A, T> of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
// x as a sum of two numbers of at most 26 bits. Exact for doubles.
template <class A>
Pair<A, double> halves(F64<A> x) {
  const int64_t half = int64_t{1} << 26;
  F64<A> high = real((bits(x) + half) & ~(2 * half - 1));
  return {high, x - high};
}
// Exact, short of underflow.
template <class A>
Pair<A, double> exact_product(F64<A> a, F64<A> b) {
  F64<A> product = a * b;
  if constexpr (A::kFused) {
    return {product, fma(a, b, negate(product))};
  } else {
    Pair<A, double> x = halves(a);
    Pair<A, double> y = halves(b);
    F64<A> rest = (x.high * y.high - product) + x.high * y.low + x.low * y.high;
    return {product, rest + x.low * y.low};
  }
}

}  // namespace hone::math
