#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "ir/reference/eval.h"

// Applies a scalar function to every element, in every domain.
//
// A function object F (scalar_functions.h) has static templates on the C++ type:
//   real(T...)     for real element types; T is double or float, and FieldElement if F::kRing
//   integer(T...)  for integers and bool; T is the C++ type of the same width and sign
// and may have but one of them. A result of another type than T is a bool.

namespace hone {

inline constexpr int64_t kElementGrain = int64_t{1} << 15;

// fn(std::type_identity<T>) with the C++ type of a computable integer or bool type.
template <class Fn>
decltype(auto) with_native(DType type, const Fn& fn) {
  switch (type) {
    case DType::i64: return fn(std::type_identity<int64_t>());
    case DType::i32: return fn(std::type_identity<int32_t>());
    case DType::i16: return fn(std::type_identity<int16_t>());
    case DType::i8: return fn(std::type_identity<int8_t>());
    case DType::u64: return fn(std::type_identity<uint64_t>());
    case DType::u32: return fn(std::type_identity<uint32_t>());
    case DType::u16: return fn(std::type_identity<uint16_t>());
    case DType::u8: return fn(std::type_identity<uint8_t>());
    case DType::boolean: return fn(std::type_identity<bool>());
    default: HONE_CHECK(false, "no arithmetic on {}", name(type));
  }
}

// out[i] = fn(in[i]...).
template <class Out, class Fn, class... In>
void map_elements(ThreadPool& pool, std::span<Out> out, const Fn& fn, std::span<const In>... in) {
  auto piece = [&](int64_t from, int64_t to) {
    for (size_t i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i) {
      out[i] = fn(in[i]...);
    }
  };
  int64_t count = static_cast<int64_t>(out.size());
  if (count <= kElementGrain) return piece(0, count);
  pool.parallel_for(0, count, kElementGrain, piece);
}

// fn of the plain numbers; a tracked result comes from all of them.
template <class Out, class Fn, class... In>
Out apply(const Fn& fn, const In&... in) {
  if constexpr (is_tracked<Out>) {
    return Out(static_cast<decltype(Out::value)>(fn(in.value...)), (in.from | ...));
  } else {
    return static_cast<Out>(fn(in...));
  }
}

// Integers are the same in all domains but one, so this does not depend on the domain: most of what
// an op's file compiles to is here.
template <class F, class Int, class... In>
void map_integers(DType type, ThreadPool& pool, std::span<Int> out, std::span<const In>... in) {
  // Images are canonical before and after: converting to the C++ type and back wraps.
  if constexpr (is_tracked<Int>) {
    using Scalar = int64_t (*)(decltype(In::value)...);
    Scalar scalar = with_native(type, []<class T>(std::type_identity<T>) -> Scalar {
      return [](decltype(In::value)... image) {
        return static_cast<int64_t>(F::integer(static_cast<T>(image)...));
      };
    });
    map_elements<Int>(pool, out, [&](const In&... x) { return apply<Int>(scalar, x...); }, in...);
  } else {
    with_native(type, [&]<class T>(std::type_identity<T>) {
      auto scalar = [](In... image) {
        return static_cast<int64_t>(F::integer(static_cast<T>(image)...));
      };
      map_elements<Int>(pool, out, scalar, in...);
    });
  }
}

// out = F(in...), element by element; the buffers of `in` have one type.
template <class F, class D, class... B>
Status map_function(Op op, ThreadPool& pool, Buffer<D>& out, const Buffer<D>& first,
                    const B&... rest) {
  using Real = typename D::Real;
  using Int = typename D::Int;
  if (first.holds_reals()) {
    if constexpr (!requires { F::real(0.0, (static_cast<void>(rest), 0.0)...); }) {
      HONE_CHECK(false, "{} of {}", op.name(), first.type().to_string());
    } else if constexpr (!is_ordered_real<Real> && !requires { F::kRing; }) {
      return no_field_meaning(op);
    } else {
      using Number = decltype(F::real(0.0, (static_cast<void>(rest), 0.0)...));
      using Out = std::conditional_t<std::is_same_v<Number, bool>, Int, Real>;
      auto scalar = [](auto... x) { return F::real(x...); };
      auto fn = [&](const auto&... x) { return apply<Out>(scalar, x...); };
      map_elements<Out>(pool, out.template as<Out>(), fn, first.reals(), rest.reals()...);
    }
  } else if constexpr (!requires { F::integer(1, (static_cast<void>(rest), 1)...); }) {
    HONE_CHECK(false, "{} of {}", op.name(), first.type().to_string());
  } else {
    map_integers<F, Int>(first.dtype(), pool, out.ints(), first.ints(), rest.ints()...);
  }
  return {};
}

// The evaluation of the op that F is.
template <class F>
struct EvalUnary {
  template <class D>
  static Status run(EvalCall<D>& call) {
    return map_function<F>(call.op, call.context.pool, call.result(), call.operand(0));
  }
};
template <class F>
struct EvalBinary {
  template <class D>
  static Status run(EvalCall<D>& call) {
    return map_function<F>(call.op, call.context.pool, call.result(), call.operand(0),
                           call.operand(1));
  }
};
template <class F>
inline constexpr EvalTable kEvalUnary = local_eval<EvalUnary<F>>(true);
template <class F>
inline constexpr EvalTable kEvalBinary = local_eval<EvalBinary<F>>(true);

}  // namespace hone
