#include "ir/contents_rules.h"

#include <limits>

#include "ir/op_def.h"

namespace hone {
namespace {

// Files can make an expression of any size, which everybody who reads it has to walk.
constexpr size_t kMaxAtoms = 128;
constexpr size_t kMaxTermProducts = 256;
constexpr size_t kMaxDivisorTerms = 3;  // long division takes a step for each power of each

// Integers up to this are exact in a real type.
int64_t exact_below(DType dtype) {
  switch (dtype) {
    case DType::f64: return int64_t{1} << 53;
    case DType::f32: return int64_t{1} << 24;
    case DType::f16: return int64_t{1} << 11;
    case DType::bf16: return int64_t{1} << 8;
    default: return 0;
  }
}

Range limits_of(DType dtype) {
  if (is_bool(dtype)) return {0, 1};
  if (is_real(dtype)) return {-exact_below(dtype), exact_below(dtype)};
  IntegerLimits limits = integer_limits(dtype);
  if (dtype == DType::u64) return {0, std::numeric_limits<int64_t>::max()};
  return {limits.lowest, limits.highest};
}

bool is_never_zero(Dim x) {
  Range range = x.range();
  return range.low > 0 || range.high < 0;
}

// The q with q * b == a.
Element exact_quotient(Dim a, Dim b) {
  if (!is_never_zero(b) || b.term_count() > kMaxDivisorTerms) return std::nullopt;
  return a.divided_by(b);
}

// 1, 0 or -1 where that is certain.
Element sign_of(Dim x) {
  Range range = x.range();
  if (range.low > 0) return 1;
  if (range.high < 0) return -1;
  if (range == Range{0, 0}) return 0;
  return std::nullopt;
}

// a / b rounded toward zero.
Element truncated_quotient(Dim a, Dim b) {
  if (Element exact = exact_quotient(a, b)) return exact;
  Range range = a.range();
  if (range.low >= 0 && provably_lt(a, b)) return 0;
  if (!b.is_static() || b.is(0)) return std::nullopt;
  const bool flips = b.value() < 0;
  const int64_t divisor = flips ? -b.value() : b.value();
  Dim quotient;
  if (range.low >= 0) {
    quotient = floordiv(a, divisor);
  } else if (range.high <= 0) {
    quotient = Dim(0) - floordiv(Dim(0) - a, divisor);
  } else {
    return std::nullopt;
  }
  return flips ? Dim(0) - quotient : quotient;
}

Element quotient(DType dtype, Dim a, Dim b) {
  return is_real(dtype) ? exact_quotient(a, b) : truncated_quotient(a, b);
}

Element remainder(DType dtype, Dim a, Dim b) {
  Element whole = truncated_quotient(a, b);
  if (!whole || whole->term_count() * b.term_count() > kMaxTermProducts) return std::nullopt;
  whole = held_by(dtype, *whole * b);
  return whole ? Element(a - *whole) : std::nullopt;
}

Element extreme(Dim a, Dim b, bool wants_max) {
  if (provably_le(a, b)) return wants_max ? b : a;
  if (provably_le(b, a)) return wants_max ? a : b;
  return std::nullopt;
}

// `decides`: the operand that gives the result whatever the other one is.
Element logical(Element a, Element b, int64_t decides) {
  for (Element x : {a, b})
    if (x && x->is(decides)) return x;
  return a && b && a->is_static() && b->is_static() ? Element(1 - decides) : std::nullopt;
}

Element cast_to(DType to, Dim x) {
  if (!is_bool(to)) return x;
  if (is_never_zero(x)) return 1;
  return x.is(0) ? Element(0) : std::nullopt;
}

Element of_unary(Opcode opcode, DType from, DType to, Dim x) {
  switch (opcode) {
    case Opcode::neg: return Dim(0) - x;
    case Opcode::sign: return sign_of(x);
    case Opcode::abs:
      if (x.range().low >= 0) return x;
      return x.range().high <= 0 ? Element(Dim(0) - x) : std::nullopt;
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
    case Opcode::trunc: return x;  // integers already
    case Opcode::not_: return is_bool(from) ? Element(Dim(1) - x) : std::nullopt;
    case Opcode::cast: return cast_to(to, x);
    default: return std::nullopt;
  }
}

Element of_binary(Opcode opcode, DType dtype, Dim a, Dim b) {
  switch (opcode) {
    case Opcode::add: return a + b;
    case Opcode::sub: return a - b;
    case Opcode::mul:
      if (a.term_count() * b.term_count() > kMaxTermProducts) return std::nullopt;
      return a * b;
    case Opcode::div: return quotient(dtype, a, b);
    case Opcode::rem: return remainder(dtype, a, b);
    case Opcode::max: return extreme(a, b, true);
    case Opcode::min: return extreme(a, b, false);
    default: return std::nullopt;
  }
}

}  // namespace

Element held_by(DType dtype, Dim value) {
  Range limits = limits_of(dtype), range = value.range();
  if (range.low < limits.low || range.high > limits.high) return std::nullopt;
  if (range.low <= -kDimLimit || range.high >= kDimLimit) return std::nullopt;  // may be saturated
  return value.atom_count() > kMaxAtoms ? std::nullopt : Element(value);
}

Element unary_element(Opcode opcode, DType from, DType to, Element x) {
  if (!x) return std::nullopt;
  Element result = of_unary(opcode, from, to, *x);
  return result ? held_by(to, *result) : std::nullopt;
}

Element binary_element(Opcode opcode, DType dtype, Element a, Element b) {
  if (opcode == Opcode::and_ || opcode == Opcode::or_) {
    return is_bool(dtype) ? logical(a, b, opcode == Opcode::or_ ? 1 : 0) : std::nullopt;
  }
  if (!a || !b) return std::nullopt;
  Element result = of_binary(opcode, dtype, *a, *b);
  return result ? held_by(dtype, *result) : std::nullopt;
}

Element compared(std::string_view direction, Dim a, Dim b) {
  if (direction == "gt" || direction == "ge") {
    std::swap(a, b);
    direction = direction == "gt" ? "lt" : "le";
  }
  if (direction == "lt") {
    if (provably_lt(a, b)) return 1;
    return provably_le(b, a) ? Element(0) : std::nullopt;
  }
  if (direction == "le") {
    if (provably_le(a, b)) return 1;
    return provably_lt(b, a) ? Element(0) : std::nullopt;
  }
  const bool wants_equal = direction == "eq";
  if (a == b) return wants_equal ? 1 : 0;
  if (is_never_zero(a - b)) return wants_equal ? 0 : 1;
  return std::nullopt;
}

Element identity_of(std::string_view kind) {
  switch (op_def(combine_of(kind)).traits.identity) {
    case Identity::zero: return 0;
    case Identity::one:
    case Identity::all_bits: return 1;  // of bools
    default: return std::nullopt;
  }
}

}  // namespace hone
