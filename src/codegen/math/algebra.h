#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The vector math is written in the numbers of an algebra. One algebra computes (host.h), one
// counts (cost.h), and the emitter's makes code for scalars or vectors.
//
// An algebra A has
//
//   static constexpr bool kFused;           whether Step::fma rounds once
//   template <class T> using Value = ...;   a float, double, int32_t or int64_t per lane
//   using Mask = ...;                       a truth per lane
//   template <class T> Value<T> constant(T number);
//   template <Step step, class T> R take(operands...);
//   template <class T, size_t N, class Condition, class Body>
//   std::array<Value<T>, N> repeat(std::array<Value<T>, N> state, Condition, Body);
//
// `take` does one step. T is the type of its operands (of the branches of a select); R and the
// operands are as the table below says. `repeat` does state = Body(state) as long as the mask
// Condition(state) holds in some lane. A lane whose condition has failed is still computed, but its
// state no longer changes.
//
// Every step is an instruction or two of any x86-64-v2, for f64 and 64-bit integers, too. The
// algebra therefore lacks conversions between reals and integers, variable shifts, and gathers. In
// place of a conversion the functions add a power of two and look at the bits. No step may be
// reassociated or contracted.

namespace hone::math {

enum class Step : uint8_t {
  // Real T. fma is a*b + c, rounded once or twice (kFused).
  add,
  sub,
  mul,
  div,
  sqrt,
  fma,
  round_even,
  round_zero,
  // Real T to Mask; false for NaN.
  less,
  less_equal,
  equal,
  // Integer T. Shifts are by a constant below the width; right shifts fill with zeros.
  integer_add,
  integer_sub,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  // Any T: (Mask, T, T).
  select,
  // Mask.
  mask_and,
  mask_or,
  mask_not,
  // Between a real and the integer of its width; T is the type that is given.
  to_bits,
  from_bits,
  // float to double; double to float.
  widen,
  narrow,
};
inline constexpr size_t kSteps = static_cast<size_t>(Step::narrow) + 1;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
using RealOf = std::conditional_t<sizeof(T) == 4, float, double>;

// A truth per lane.
template <class A>
struct Truth {
  A* algebra;
  typename A::Mask value;

  friend Truth operator&(Truth a, Truth b) {
    return {a.algebra, a.algebra->template take<Step::mask_and, bool>(a.value, b.value)};
  }
  friend Truth operator|(Truth a, Truth b) {
    return {a.algebra, a.algebra->template take<Step::mask_or, bool>(a.value, b.value)};
  }
  friend Truth operator!(Truth a) {
    return {a.algebra, a.algebra->template take<Step::mask_not, bool>(a.value)};
  }
};

// A number per lane, with operators. A plain T beside one is a constant.
template <class A, class T>
struct Number {
  A* algebra;
  typename A::template Value<T> value;

  Number with(T number) const { return {algebra, algebra->constant(number)}; }

  template <Step step, class... Others>
  Number take(Others... others) const {
    return {algebra, algebra->template take<step, T>(value, others.value...)};
  }
  template <Step step>
  Truth<A> compare(Number other) const {
    return {algebra, algebra->template take<step, T>(value, other.value)};
  }

  static constexpr bool kReal = std::floating_point<T>;

#define HONE_OPERATOR(symbol, real_step, integer_step)                        \
  friend Number operator symbol(Number a, Number b) {                         \
    if constexpr (kReal)                                                      \
      return a.template take<Step::real_step>(b);                             \
    else                                                                      \
      return a.template take<Step::integer_step>(b);                          \
  }                                                                           \
  friend Number operator symbol(Number a, T b) { return a symbol a.with(b); } \
  friend Number operator symbol(T a, Number b) { return b.with(a) symbol b; }
  HONE_OPERATOR(+, add, integer_add)
  HONE_OPERATOR(-, sub, integer_sub)
#undef HONE_OPERATOR

#define HONE_OPERATOR(symbol, step, condition)      \
  friend Number operator symbol(Number a, Number b) \
    requires(condition)                             \
  {                                                 \
    return a.template take<Step::step>(b);          \
  }                                                 \
  friend Number operator symbol(Number a, T b)      \
    requires(condition)                             \
  {                                                 \
    return a symbol a.with(b);                      \
  }                                                 \
  friend Number operator symbol(T a, Number b)      \
    requires(condition)                             \
  {                                                 \
    return b.with(a) symbol b;                      \
  }
  HONE_OPERATOR(*, mul, kReal)
  HONE_OPERATOR(/, div, kReal)
  HONE_OPERATOR(&, bit_and, !kReal)
  HONE_OPERATOR(|, bit_or, !kReal)
  HONE_OPERATOR(^, bit_xor, !kReal)
#undef HONE_OPERATOR
  friend Number operator<<(Number a, int by) {
    return a.template take<Step::shift_left>(a.with(static_cast<T>(by)));
  }
  friend Number operator>>(Number a, int by) {
    return a.template take<Step::shift_right>(a.with(static_cast<T>(by)));
  }

#define HONE_COMPARISON(symbol, expression)                                  \
  friend Truth<A> operator symbol(Number a, Number b) { return expression; } \
  friend Truth<A> operator symbol(Number a, T b) { return a symbol a.with(b); }
  HONE_COMPARISON(<, a.template compare<Step::less>(b))
  HONE_COMPARISON(<=, a.template compare<Step::less_equal>(b))
  HONE_COMPARISON(>, b.template compare<Step::less>(a))
  HONE_COMPARISON(>=, b.template compare<Step::less_equal>(a))
  HONE_COMPARISON(==, a.template compare<Step::equal>(b))
#undef HONE_COMPARISON
};

template <class A>
using F32 = Number<A, float>;
template <class A>
using F64 = Number<A, double>;

template <class A, class T>
Number<A, T> select(Truth<A> condition, Number<A, T> yes, Number<A, T> no) {
  A* a = yes.algebra;
  return {a, a->template take<Step::select, T>(condition.value, yes.value, no.value)};
}
template <class A, class T>
Number<A, T> select(Truth<A> condition, Number<A, T> yes, std::type_identity_t<T> no) {
  return select(condition, yes, yes.with(no));
}
template <class A, class T>
Number<A, T> select(Truth<A> condition, std::type_identity_t<T> yes, Number<A, T> no) {
  return select(condition, no.with(yes), no);
}

template <class A, class T>
Number<A, BitsOf<T>> bits(Number<A, T> x) {
  return {x.algebra, x.algebra->template take<Step::to_bits, T>(x.value)};
}
template <class A, class T>
Number<A, RealOf<T>> real(Number<A, T> x) {
  return {x.algebra, x.algebra->template take<Step::from_bits, T>(x.value)};
}
template <class A>
F64<A> widen(F32<A> x) {
  return {x.algebra, x.algebra->template take<Step::widen, float>(x.value)};
}
template <class A>
F32<A> narrow(F64<A> x) {
  return {x.algebra, x.algebra->template take<Step::narrow, double>(x.value)};
}

template <class A, class T>
Number<A, T> fma(Number<A, T> a, Number<A, T> b, Number<A, T> c) {
  return a.template take<Step::fma>(b, c);
}
template <class A, class T>
Number<A, T> fma(Number<A, T> a, std::type_identity_t<T> b, Number<A, T> c) {
  return fma(a, a.with(b), c);
}
template <class A, class T>
Number<A, T> fma(Number<A, T> a, Number<A, T> b, std::type_identity_t<T> c) {
  return fma(a, b, a.with(c));
}
template <class A, class T>
Number<A, T> fma(Number<A, T> a, std::type_identity_t<T> b, std::type_identity_t<T> c) {
  return fma(a, a.with(b), a.with(c));
}
template <class A, class T>
Number<A, T> sqrt(Number<A, T> x) {
  return x.template take<Step::sqrt>();
}
template <class A, class T>
Number<A, T> round_even(Number<A, T> x) {
  return x.template take<Step::round_even>();
}
template <class A, class T>
Number<A, T> round_zero(Number<A, T> x) {
  return x.template take<Step::round_zero>();
}

}  // namespace hone::math
