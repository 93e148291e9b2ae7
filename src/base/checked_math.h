#pragma once

#include "base/error.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

// Integer arithmetic for sizes, offsets and indices. An empty optional means: the exact result
// does not fit in 64 bits. Every size that depends on outside input goes through here.

namespace hone {

constexpr std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

constexpr std::optional<int64_t> checked_sub(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

constexpr std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// 1 for no factors. A zero factor makes the product 0, whatever the others are: {2^62, 4, 0} is 0
// in any order, as for the element count of a tensor.
constexpr std::optional<int64_t> checked_product(std::span<const int64_t> factors) {
  for (int64_t factor : factors) {
    if (factor == 0) return 0;
  }
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

// Rounds toward minus infinity: floor_div(-7, 2) == -4, floor_div(7, -2) == -4.
// The one quotient that does not exist, INT64_MIN / -1, breaks an invariant, as does b == 0.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  HONE_CHECK(b != 0, "floor_div({}, 0)", a);
  HONE_CHECK(b != -1 || a != std::numeric_limits<int64_t>::min(), "floor_div overflows");
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// Rounds toward plus infinity.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  HONE_CHECK(b != 0, "ceil_div({}, 0)", a);
  HONE_CHECK(b != -1 || a != std::numeric_limits<int64_t>::min(), "ceil_div overflows");
  return a / b + ((a % b != 0 && (a < 0) == (b < 0)) ? 1 : 0);
}

// a - b * floor_div(a, b): has the sign of b, so that it is an index in [0, b) for b > 0.
constexpr int64_t floor_mod(int64_t a, int64_t b) {
  HONE_CHECK(b != 0, "floor_mod({}, 0)", a);
  if (b == -1) return 0;  // INT64_MIN % -1 traps.
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

constexpr bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// The smallest multiple of `multiple` (> 0) that is not below the value.
constexpr std::optional<int64_t> checked_round_up(int64_t value, int64_t multiple) {
  HONE_CHECK(multiple > 0, "round_up to a multiple of {}", multiple);
  int64_t remainder = floor_mod(value, multiple);
  return remainder == 0 ? value : checked_add(value, multiple - remainder);
}

// For values that are known to be far from the limits.
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  std::optional<int64_t> result = checked_round_up(value, multiple);
  HONE_CHECK(result.has_value(), "round_up({}, {}) overflows", value, multiple);
  return *result;
}

}  // namespace hone
