#pragma once

#include <limits>
#include <string_view>
#include <type_traits>

#include "ir/op_def.h"
#include "ir/reference/eval.h"
#include "ir/reference/scalar_functions.h"

// The ways in which reductions, scans and windows combine two elements.

namespace hone {

// True if elements of the type can be combined so: the error calls the op by `kind`.
Status check_combine(std::string_view kind, DType dtype);

// wrap_to for an integer type or bool that is known beforehand.
class IntegerWrap {
 public:
  explicit IntegerWrap(DType dtype)
      : shift_(is_bool(dtype) ? 0 : 64 - bits(dtype)), is_signed_(kind(dtype) == DTypeKind::sint) {}
  bool is_signed() const { return is_signed_; }
  int64_t operator()(uint64_t value) const {
    value <<= shift_;
    return is_signed_ ? static_cast<int64_t>(value) >> shift_
                      : static_cast<int64_t>(value >> shift_);
  }

 private:
  int shift_;
  bool is_signed_;
};

// T is an Int of some domain.
template <class T>
inline constexpr bool holds_integers =
    std::is_same_v<T, int64_t> || std::is_same_v<T, Tracked<int64_t>>;

// The function of an op that combines.
template <Opcode kOp>
struct CombineOf;
template <>
struct CombineOf<Opcode::add> : scalar::Add {};
template <>
struct CombineOf<Opcode::mul> : scalar::Mul {};
template <>
struct CombineOf<Opcode::max> : scalar::Max {};
template <>
struct CombineOf<Opcode::min> : scalar::Min {};
template <>
struct CombineOf<Opcode::and_> : scalar::And {};
template <>
struct CombineOf<Opcode::or_> : scalar::Or {};

// One op on elements of one type, as a function object with an identity.
template <Opcode kOp, class T>
class Combine {
 public:
  explicit Combine(DType dtype) : wrap_(dtype), identity_(identity(dtype)) {}

  T operator()(const T& a, const T& b) const {
    return lift([this](auto x, auto y) { return this->apply(x, y); }, a, b);
  }
  const T& identity() const { return identity_; }

 private:
  using Function = CombineOf<kOp>;

  template <class Number>
  Number apply(Number a, Number b) const {
    return Function::real(a, b);
  }
  int64_t apply(int64_t a, int64_t b) const {
    if (wrap_.is_signed()) return wrap_(static_cast<uint64_t>(Function::integer(a, b)));
    return wrap_(Function::integer(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }

  static T identity(DType dtype) {
    if constexpr (kOp == Opcode::add || kOp == Opcode::or_) {
      return T(0);
    } else if constexpr (kOp == Opcode::mul) {
      return T(1);
    } else if constexpr (kOp == Opcode::and_) {
      return T(wrap_to(dtype, -1));
    } else if constexpr (holds_integers<T>) {
      IntegerLimits limits = integer_limits(dtype);
      return T(kOp == Opcode::min ? limits.highest : limits.lowest);
    } else {
      using Number = std::remove_cvref_t<decltype(plain(T()))>;
      Number infinity = std::numeric_limits<Number>::infinity();
      return T(kOp == Opcode::min ? infinity : -infinity);
    }
  }

  IntegerWrap wrap_;
  T identity_;
};

// fn(Combine<combine, T>) for an op that is known at run time. Elements of the prime field have no
// order: the error names `op`.
template <class T, class Fn>
Status with_combine(Op op, Opcode combine, DType dtype, const Fn& fn) {
  auto call = [&]<Opcode kOp>() -> Status {
    constexpr bool bitwise = kOp == Opcode::and_ || kOp == Opcode::or_;
    constexpr bool ordered = kOp == Opcode::max || kOp == Opcode::min;
    if constexpr (bitwise && !holds_integers<T>) {
      HONE_CHECK(false, "{} of reals", op.name());
    } else if constexpr (ordered && !is_ordered_real<T>) {
      return no_field_meaning(op);
    } else {
      fn(Combine<kOp, T>(dtype));
    }
    return {};
  };
  switch (combine) {
    case Opcode::add: return call.template operator()<Opcode::add>();
    case Opcode::mul: return call.template operator()<Opcode::mul>();
    case Opcode::max: return call.template operator()<Opcode::max>();
    case Opcode::min: return call.template operator()<Opcode::min>();
    case Opcode::and_: return call.template operator()<Opcode::and_>();
    case Opcode::or_: return call.template operator()<Opcode::or_>();
    default: HONE_CHECK(false, "{} combines nothing here", name(combine));
  }
}

// The evaluation of an op whose `kind` says how elements of its first operand are combined. F has
// `template <class T, class D, class C> static void run(EvalCall<D>&, const C& combine)`:
//   const EvalTable kEvalReduce = local_eval<EvalKind<EvalReduce>>();
template <class F>
struct EvalKind {
  template <class D>
  static Status run(EvalCall<D>& call) {
    return with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) {
      return with_combine<T>(call.op, combine_of(call.op.word("kind")), call.result().dtype(),
                             [&](const auto& combine) { F::template run<T>(call, combine); });
    });
  }
};

}  // namespace hone
