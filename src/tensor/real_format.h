#pragma once

#include <bit>
#include <cstdint>

#include "base/error.h"
#include "tensor/dtype.h"

// The floating-point formats of 16 bits and fewer, described by numbers.

namespace hone {

struct RealFormat {
  int mantissa_bits;
  int bias;
  uint32_t sign;           // the pattern's sign bit; 0: there is none
  uint32_t highest;        // the pattern of the largest finite number
  uint32_t overflow;       // what larger numbers become: infinity, else NaN, else `highest`
  uint32_t nan;            // what NaN becomes
  bool has_negative_zero;  // the *fnuz formats use its pattern for NaN
  bool has_zero = true;    // f8e8m0 goes on with powers of two: its pattern 0 is 2^-bias

  uint32_t encode(double value) const;
  constexpr double decode(uint32_t pattern) const;
};

inline constexpr RealFormat kF16 = {10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, true};
inline constexpr RealFormat kBf16 = {7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, true};
inline constexpr RealFormat kF8e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, true};
inline constexpr RealFormat kF8e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0x80, false};
inline constexpr RealFormat kF8e5m2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, true};
inline constexpr RealFormat kF8e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0x80, false};
inline constexpr RealFormat kF8e8m0 = {0, 127, 0, 0xfe, 0xff, 0xff, true, false};
inline constexpr RealFormat kF4e2m1 = {1, 1, 0x8, 0x7, 0x7, 0x8, true};

inline const RealFormat& real_format(DType type) {
  switch (type) {
    case DType::f16: return kF16;
    case DType::bf16: return kBf16;
    case DType::f8e4m3fn: return kF8e4m3fn;
    case DType::f8e4m3fnuz: return kF8e4m3fnuz;
    case DType::f8e5m2: return kF8e5m2;
    case DType::f8e5m2fnuz: return kF8e5m2fnuz;
    case DType::f8e8m0: return kF8e8m0;
    case DType::f4e2m1: return kF4e2m1;
    default: break;
  }
  HONE_CHECK(false, "{} is no small real type", name(type));
  return kF16;
}

// 2^exponent, for the exponents of normal doubles.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

constexpr double RealFormat::decode(uint32_t pattern) const {
  constexpr uint64_t kNan = 0x7ff8'0000'0000'0000, kInfinity = 0x7ff0'0000'0000'0000;
  uint32_t magnitude = pattern & (sign - 1);
  uint64_t double_sign = (pattern & sign) != 0 ? uint64_t{1} << 63 : 0;
  if (!has_negative_zero && pattern == sign) return std::bit_cast<double>(kNan);
  if (magnitude > highest) {
    bool infinite = magnitude == overflow && overflow != nan;
    return std::bit_cast<double>(double_sign | (infinite ? kInfinity : kNan));
  }
  if (magnitude == 0 && !has_zero) return power_of_two(-bias);
  uint32_t exponent = magnitude >> mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
  // Subnormals have the exponent of 1 but not its leading bit.
  if (exponent == 0) {
    exponent = 1;
  } else {
    mantissa |= 1u << mantissa_bits;
  }
  double size = mantissa * power_of_two(static_cast<int>(exponent) - bias - mantissa_bits);
  return double_sign != 0 ? -size : size;
}

inline uint32_t RealFormat::encode(double value) const {
  uint64_t pattern = std::bit_cast<uint64_t>(value);
  uint32_t result_sign = (pattern >> 63) != 0 ? sign : 0;
  int exponent = static_cast<int>((pattern >> 52) & 0x7ff) - 1023;
  uint64_t significand = pattern & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024) {
    uint32_t result = significand != 0 ? nan : overflow;
    return has_negative_zero ? result_sign | result : result;
  }
  significand |= uint64_t{1} << 52;  // Subnormal doubles are far below half of any format's least.

  const int lowest = has_zero ? 1 - bias : -bias;
  if (!has_zero && exponent < lowest) return 0;
  // The result is a multiple of 2^(quantum - mantissa_bits).
  int quantum = exponent < lowest ? lowest : exponent;
  int shift = quantum - exponent + 52 - mantissa_bits;
  if (shift > 54) return result_sign != 0 && has_negative_zero ? sign : 0;
  uint64_t rounded = significand >> shift;
  uint64_t rest = significand - (rounded << shift);
  uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;

  // The leading bit, if there is one, and a carry out of the mantissa both count up the exponent.
  uint64_t magnitude = (static_cast<uint64_t>(quantum + bias - 1) << mantissa_bits) + rounded;
  if (magnitude > highest) return has_negative_zero ? result_sign | overflow : overflow;
  if (magnitude == 0 && !has_negative_zero) return 0;
  return result_sign | static_cast<uint32_t>(magnitude);
}

}  // namespace hone
