#include "transport/add_elements.h"

#include <bit>
#include <cstring>
#include <limits>

#include "tensor/real_format.h"

namespace hone {
namespace {

template <class T>
T read(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T, class Add>
void add_each(std::byte* to, const std::byte* a, const std::byte* b, int64_t count,
              const Add& add) {
  for (int64_t i = 0; i < count; ++i) {
    const T sum = add(read<T>(a, i), read<T>(b, i));
    std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &sum, sizeof(T));
  }
}

template <class T>
T add_reals(T a, T b) {
  const T sum = a + b;
  return sum == sum ? sum : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
T wrapping_add(T a, T b) {
  return static_cast<T>(a + b);
}

float wide(uint16_t pattern) { return std::bit_cast<float>(static_cast<uint32_t>(pattern) << 16); }

// The sum of two floats has more than twice the digits of bf16, so rounding it again rounds the
// exact sum. Half of the last kept digit is added, a little less if that digit is even.
uint16_t add_bf16(uint16_t a, uint16_t b) {
  const float sum = wide(a) + wide(b);
  const auto bits = std::bit_cast<uint32_t>(sum);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(sum == sum ? rounded : kBf16.nan);
}

uint16_t add_f16(uint16_t a, uint16_t b) {
  const double sum = kF16.decode(a) + kF16.decode(b);  // exact
  return static_cast<uint16_t>(sum == sum ? kF16.encode(sum) : kF16.nan);
}

}  // namespace

void add_elements(DType type, std::byte* to, const std::byte* a, const std::byte* b,
                  int64_t count) {
  switch (type) {
    case DType::f64: return add_each<double>(to, a, b, count, add_reals<double>);
    case DType::f32: return add_each<float>(to, a, b, count, add_reals<float>);
    case DType::f16: return add_each<uint16_t>(to, a, b, count, add_f16);
    case DType::bf16: return add_each<uint16_t>(to, a, b, count, add_bf16);
    default: break;
  }
  HONE_CHECK(is_integer(type) && !is_storage_only(type), "a sum of {}", name(type));
  switch (bits(type)) {
    case 64: return add_each<uint64_t>(to, a, b, count, wrapping_add<uint64_t>);
    case 32: return add_each<uint32_t>(to, a, b, count, wrapping_add<uint32_t>);
    case 16: return add_each<uint16_t>(to, a, b, count, wrapping_add<uint16_t>);
    default: return add_each<uint8_t>(to, a, b, count, wrapping_add<uint8_t>);
  }
}

}  // namespace hone
