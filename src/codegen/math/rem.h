#pragma once

#include "codegen/math/number.h"

// The remainder of the division that rounds toward zero, exact.

namespace hone::math {

// 2^k for a whole k, where that is a normal number.
template <class A>
F64<A> power_of_two(F64<A> k) {
  using F = Format<double>;
  return real((bits(k + F::kWhole) << F::kFraction) + F::kOne);
}

// Long division of the fractions, as many bits at a time as make every product exact. It takes one
// trip while the quotient is below 2^24, at most 12 for numbers of f32 and 88 for all.
template <Precision precision = Precision::full, class A>
F64<A> rem(F64<A> x, F64<A> y) {
  using F = Format<double>;
  using Value = typename A::template Value<double>;
  A* algebra = x.algebra;
  F64<A> size = abs(x);
  F64<A> by = abs(y);
  Split<A, double> dividend = split_any<precision>(size, 1.0);
  Split<A, double> divisor = split_any<precision>(by, 1.0);
  F64<A> d = divisor.fraction;
  Pair<A, double> d_parts = halves(d);
  F64<A> first = dividend.fraction;
  first = select(first >= d, first - d, first);
  // The remainder so far, below d, and how many bits of the dividend are to be appended.
  std::array<Value, 2> state = {first.value, (dividend.exponent - divisor.exponent).value};
  auto unfinished = [&](const std::array<Value, 2>& now) {
    return (F64<A>{algebra, now[1]} > 0.0).value;
  };
  auto append_bits = [&](const std::array<Value, 2>& now) -> std::array<Value, 2> {
    F64<A> left = {algebra, now[1]};
    F64<A> step = at_least(at_most(left, 24.0), 0.0);
    F64<A> r = F64<A>{algebra, now[0]} * power_of_two(step);
    F64<A> quotient = round_zero(r / d);  // may be one too high
    r = (r - quotient * d_parts.high) - quotient * d_parts.low;
    r = select(r < 0.0, r + d, r);
    return {r.value, (left - step).value};
  };
  state = algebra->template repeat<double>(state, unfinished, append_bits);
  F64<A> r = {algebra, state[0]};
  if constexpr (precision == Precision::single) {
    r = r * power_of_two(divisor.exponent);
  } else {  // the power may be no normal number
    F64<A> half = round_even(divisor.exponent * 0.5);
    r = r * power_of_two(half) * power_of_two(divisor.exponent - half);
  }
  Truth<A> defined = (size < F::kInfinity) & (by > 0.0);
  return with_sign_of(select(size < by, size, select(defined, r, F::kNan)), x);
}

}  // namespace hone::math
