#pragma once

#include <cmath>

#include "codegen/math/algebra.h"

// The algebra of plain C++: one lane, computed at once. Compilers vectorize loops around it.

namespace hone::math {

template <bool fused>
struct Host {
  static constexpr bool kFused = fused;
  template <class T>
  using Value = T;
  using Mask = bool;

  template <class T>
  T constant(T number) {
    return number;
  }

  template <Step step, class T>
  auto take(T a) {
    if constexpr (step == Step::sqrt) return std::sqrt(a);
    if constexpr (step == Step::round_even) return std::nearbyint(a);
    if constexpr (step == Step::round_zero) return std::trunc(a);
    if constexpr (step == Step::mask_not) return !a;
    if constexpr (step == Step::to_bits) return std::bit_cast<BitsOf<T>>(a);
    if constexpr (step == Step::from_bits) return std::bit_cast<RealOf<T>>(a);
    if constexpr (step == Step::widen) return static_cast<double>(a);
    if constexpr (step == Step::narrow) return static_cast<float>(a);
  }

  template <Step step, class T>
  auto take(T a, T b) {
    if constexpr (step == Step::add) return a + b;
    if constexpr (step == Step::sub) return a - b;
    if constexpr (step == Step::mul) return a * b;
    if constexpr (step == Step::div) return a / b;
    if constexpr (step == Step::less) return a < b;
    if constexpr (step == Step::less_equal) return a <= b;
    if constexpr (step == Step::equal) return a == b;
    if constexpr (step == Step::mask_and) return static_cast<bool>(a & b);
    if constexpr (step == Step::mask_or) return static_cast<bool>(a | b);
    if constexpr (std::signed_integral<T>) {
      using Unsigned = std::make_unsigned_t<T>;  // wraps
      Unsigned x = static_cast<Unsigned>(a);
      Unsigned y = static_cast<Unsigned>(b);
      if constexpr (step == Step::integer_add) return static_cast<T>(x + y);
      if constexpr (step == Step::integer_sub) return static_cast<T>(x - y);
      if constexpr (step == Step::bit_and) return static_cast<T>(x & y);
      if constexpr (step == Step::bit_or) return static_cast<T>(x | y);
      if constexpr (step == Step::bit_xor) return static_cast<T>(x ^ y);
      if constexpr (step == Step::shift_left) return static_cast<T>(x << y);
      if constexpr (step == Step::shift_right) return static_cast<T>(x >> y);
    }
  }

  template <Step step, class T>
  T take(T a, T b, T c)
    requires(step == Step::fma)
  {
    return fused ? std::fma(a, b, c) : a * b + c;
  }

  template <Step step, class T>
  T take(bool condition, T yes, T no)
    requires(step == Step::select)
  {
    return condition ? yes : no;
  }

  template <class T, size_t N, class Condition, class Body>
  std::array<T, N> repeat(std::array<T, N> state, Condition condition, Body body) {
    while (condition(state)) state = body(state);
    return state;
  }
};

}  // namespace hone::math
