#include "tensor/dtype.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "tensor/real_format.h"

namespace hone {

namespace {

struct Row {
  std::string_view text;
  int bits;
  DTypeKind kind;
  bool storage_only;
};

constexpr Row kRows[] = {
#define HONE_DTYPE(id, text, bits, kind, storage_only) {text, bits, DTypeKind::kind, storage_only},
#include "tensor/dtypes.def"
};

const Row& row(DType type) { return kRows[static_cast<size_t>(type)]; }

}  // namespace

std::string_view name(DType type) { return row(type).text; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kRows[i].text == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DTypeKind kind(DType type) { return row(type).kind; }
int bits(DType type) { return row(type).bits; }
bool is_storage_only(DType type) { return row(type).storage_only; }

DType pattern_type(DType type) {
  for (DType unsigned_type : {DType::u2, DType::u4, DType::u8, DType::u16, DType::u32})
    if (bits(unsigned_type) == bits(type)) return unsigned_type;
  return DType::u64;
}

double decode_real(DType type, uint64_t pattern) {
  switch (type) {
    case DType::f64: return std::bit_cast<double>(pattern);
    case DType::f32: return std::bit_cast<float>(static_cast<uint32_t>(pattern));
    default: return real_format(type).decode(static_cast<uint32_t>(pattern));
  }
}

uint64_t encode_real(DType type, double value) {
  switch (type) {
    case DType::f64: return std::bit_cast<uint64_t>(value);
    case DType::f32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    default: return real_format(type).encode(value);
  }
}

double round_to(DType type, double value) {
  if (type == DType::f64) return value;
  if (type == DType::f32) return static_cast<float>(value);
  return decode_real(type, encode_real(type, value));
}

int64_t wrap_to(DType type, int64_t value) {
  if (is_bool(type)) return value != 0 ? 1 : 0;
  HONE_CHECK(is_integer(type), "{} is no integer type", name(type));
  int unused = 64 - bits(type);
  uint64_t at_the_top = static_cast<uint64_t>(value) << unused;
  if (kind(type) == DTypeKind::sint) return static_cast<int64_t>(at_the_top) >> unused;
  return static_cast<int64_t>(at_the_top >> unused);
}

int64_t real_to_integer(DType type, double value) {
  if (is_bool(type)) return value != 0 ? 1 : 0;
  if (type == DType::u64) return static_cast<int64_t>(saturating_cast<uint64_t>(value));
  IntegerLimits limits = integer_limits(type);
  return std::clamp(saturating_cast<int64_t>(value), limits.lowest, limits.highest);
}

double integer_to_real(DType type, int64_t image) {
  if (type == DType::u64) return static_cast<double>(static_cast<uint64_t>(image));
  return static_cast<double>(image);
}

IntegerLimits integer_limits(DType type) {
  if (is_bool(type)) return {0, 1};
  HONE_CHECK(is_integer(type), "{} is no integer type", name(type));
  if (kind(type) == DTypeKind::uint) {
    return {0, static_cast<int64_t>(~uint64_t{0} >> (64 - bits(type)))};
  }
  int64_t highest = static_cast<int64_t>((uint64_t{1} << (bits(type) - 1)) - 1);
  return {-highest - 1, highest};
}

double highest_finite(DType type) {
  switch (type) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return std::numeric_limits<float>::max();
    default: return real_format(type).decode(real_format(type).highest);
  }
}

}  // namespace hone
