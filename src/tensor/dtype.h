#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>

// Element types and the exact conversions between their bit patterns and numbers.

namespace hone {

enum class DType : uint8_t {
#define HONE_DTYPE(id, text, bits, kind, storage_only) id,
#include "tensor/dtypes.def"
};

enum class DTypeKind : uint8_t { real, sint, uint, truth };

#define HONE_DTYPE(id, text, bits, kind, storage_only) +1
inline constexpr int kDTypeCount = 0
#include "tensor/dtypes.def"
    ;

std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view text);

DTypeKind kind(DType type);
// Types of fewer than 8 bits share bytes, the first element in the lowest bits.
int bits(DType type);
bool is_storage_only(DType type);
DType pattern_type(DType type);  // the unsigned integers of its width
inline bool is_real(DType type) { return kind(type) == DTypeKind::real; }
inline bool is_integer(DType type) {
  return kind(type) == DTypeKind::sint || kind(type) == DTypeKind::uint;
}
inline bool is_signed(DType type) {
  return kind(type) == DTypeKind::sint || kind(type) == DTypeKind::real;
}
inline bool is_bool(DType type) { return type == DType::boolean; }

// A set of element types, for legality tables.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (DType t : types) mask_ |= bit(t);
  }
  constexpr bool contains(DType t) const { return (mask_ & bit(t)) != 0; }
  constexpr DTypeSet operator|(DTypeSet other) const { return from(mask_ | other.mask_); }
  constexpr bool operator==(const DTypeSet&) const = default;

 private:
  static constexpr uint32_t bit(DType t) { return uint32_t{1} << static_cast<int>(t); }
  static constexpr DTypeSet from(uint32_t mask) {
    DTypeSet s;
    s.mask_ = mask;
    return s;
  }
  uint32_t mask_ = 0;
};

inline constexpr DTypeSet kReal = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline constexpr DTypeSet kSigned = {DType::i64, DType::i32, DType::i16, DType::i8};
inline constexpr DTypeSet kUnsigned = {DType::u64, DType::u32, DType::u16, DType::u8};
inline constexpr DTypeSet kBool = {DType::boolean};
inline constexpr DTypeSet kInteger = kSigned | kUnsigned;
inline constexpr DTypeSet kNumber = kReal | kInteger;
inline constexpr DTypeSet kComputable = kNumber | kBool;  // everything that is not storage-only
// The types that numbers are quantized to. f8e8m0 is for scales: it has powers of two alone, and no
// zero.
inline constexpr DTypeSet kShortReal = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                                        DType::f8e5m2fnuz, DType::f4e2m1};
inline constexpr DTypeSet kShortInteger = {DType::i4, DType::u4, DType::i2, DType::u2};
inline constexpr DTypeSet kStorageOnly = kShortReal | kShortInteger | DTypeSet{DType::f8e8m0};
inline constexpr DTypeSet kAny = kComputable | kStorageOnly;

// The number that a real type's bit pattern stands for; exact.
double decode_real(DType type, uint64_t pattern);
// The bit pattern nearest to `value`: ties to even, a single rounding from double. Overflow gives
// infinity where the type has one, otherwise NaN (f8e4m3fn, *fnuz, f8e8m0). NaN stays NaN. f4e2m1
// has neither: infinity becomes 6, and NaN -0. f8e8m0 has no sign and no zero: it takes the size,
// of two equally near powers of two the larger one, and at least 2^-127.
uint64_t encode_real(DType type, double value);
// decode_real(type, encode_real(type, value)), fast for f64 and f32.
double round_to(DType type, double value);

// Wraps modulo 2^bits and sign- or zero-extends: the canonical int64 image of an integer of `type`.
// A u64 above 2^63 is the int64 of the same bits. For bool: 0 or 1 (value != 0).
int64_t wrap_to(DType type, int64_t value);
// Real to integer as `cast` defines it: toward zero, saturating at the type's limits, NaN gives 0.
// For bool: value != 0, which holds for NaN.
int64_t real_to_integer(DType type, double value);
template <std::integral T>  // for the types that C++ has, but bool
constexpr T saturating_cast(double value) {
  using Limits = std::numeric_limits<T>;
  constexpr double kAbove = 2.0 * static_cast<double>(Limits::max() / 2 + 1);  // exact
  if (value != value) return 0;
  if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  return value >= kAbove ? Limits::max() : static_cast<T>(value);
}
// The number that the canonical image stands for (u64 images above 2^63 are large, not negative).
double integer_to_real(DType type, int64_t image);

struct IntegerLimits {
  int64_t lowest;   // canonical images
  int64_t highest;  // for u64: the image of 2^64 - 1, which is -1
};
IntegerLimits integer_limits(DType type);
double highest_finite(DType type);  // of a real type

}  // namespace hone
