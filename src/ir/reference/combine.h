#pragma once

#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "ir/op.h"
#include "ir/reference/eval.h"
#include "ir/reference/scalar_functions.h"

// The ways in which reductions, scans and windows combine two elements.

namespace hone {

enum class CombineKind : uint8_t { sum, product, max, min, and_, or_ };

// The kind that an attribute's word names; another word is a bug of the caller.
CombineKind combine_kind(std::string_view word);
// Numbers have sum, product, max and min; bools and integers have and, or (bitwise).
Status check_combine(std::string_view word, DType dtype);

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

// One kind on elements of one type, as a function object with an identity.
template <CombineKind kKind, class T>
class Combine {
 public:
  explicit Combine(DType dtype) : wrap_(dtype), identity_(identity(dtype)) {}

  T operator()(const T& a, const T& b) const {
    return lift([this](auto x, auto y) { return this->apply(x, y); }, a, b);
  }
  const T& identity() const { return identity_; }

 private:
  using Function = std::tuple_element_t<
      static_cast<size_t>(kKind),
      std::tuple<scalar::Add, scalar::Mul, scalar::Max, scalar::Min, scalar::And, scalar::Or>>;

  template <class Number>
  Number apply(Number a, Number b) const {
    return Function::real(a, b);
  }
  int64_t apply(int64_t a, int64_t b) const {
    if (wrap_.is_signed()) return wrap_(static_cast<uint64_t>(Function::integer(a, b)));
    return wrap_(Function::integer(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }

  static T identity(DType dtype) {
    if constexpr (kKind == CombineKind::sum || kKind == CombineKind::or_) {
      return T(0);
    } else if constexpr (kKind == CombineKind::product) {
      return T(1);
    } else if constexpr (kKind == CombineKind::and_) {
      return T(wrap_to(dtype, -1));
    } else if constexpr (holds_integers<T>) {
      IntegerLimits limits = integer_limits(dtype);
      return T(kKind == CombineKind::min ? limits.highest : limits.lowest);
    } else {
      using Number = std::remove_cvref_t<decltype(plain(T()))>;
      Number infinity = std::numeric_limits<Number>::infinity();
      return T(kKind == CombineKind::min ? infinity : -infinity);
    }
  }

  IntegerWrap wrap_;
  T identity_;
};

// fn(Combine<kind, T>) for a kind that is known at run time. Elements of the prime field have no
// order: the error names `op`.
template <class T, class Fn>
Status with_combine(Op op, CombineKind kind, DType dtype, const Fn& fn) {
  auto call = [&]<CombineKind kKind>() -> Status {
    constexpr bool bitwise = kKind == CombineKind::and_ || kKind == CombineKind::or_;
    constexpr bool ordered = kKind == CombineKind::max || kKind == CombineKind::min;
    if constexpr (bitwise && !holds_integers<T>) {
      HONE_CHECK(false, "{} of reals", op.name());
    } else if constexpr (ordered && !is_ordered_real<T>) {
      return no_field_meaning(op);
    } else {
      fn(Combine<kKind, T>(dtype));
    }
    return {};
  };
  switch (kind) {
    case CombineKind::sum: return call.template operator()<CombineKind::sum>();
    case CombineKind::product: return call.template operator()<CombineKind::product>();
    case CombineKind::max: return call.template operator()<CombineKind::max>();
    case CombineKind::min: return call.template operator()<CombineKind::min>();
    case CombineKind::and_: return call.template operator()<CombineKind::and_>();
    case CombineKind::or_: return call.template operator()<CombineKind::or_>();
  }
  HONE_CHECK(false, "a combine kind of {}", static_cast<int>(kind));
}

}  // namespace hone
