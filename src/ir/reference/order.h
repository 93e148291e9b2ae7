#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ir/reference/domain.h"

namespace hone {

// A number that orders elements of a type as their values do: NaN is the greatest, -0 equals +0.
inline uint64_t order_key(double value) {
  if (std::isnan(value)) return UINT64_MAX;
  uint64_t pattern = std::bit_cast<uint64_t>(value + 0.0);  // -0 becomes +0
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return (pattern & kSign) != 0 ? ~pattern : pattern | kSign;
}
inline uint64_t order_key(int64_t image, DType dtype) {
  uint64_t bits = static_cast<uint64_t>(image);
  return dtype == DType::u64 ? bits : bits ^ uint64_t { 1 } << 63;
}

// The key of an element of any ordered domain.
template <class T>
uint64_t order_key_of(const T& element, DType dtype) {
  if (is_real(dtype)) return order_key(static_cast<double>(plain(element)));
  return order_key(static_cast<int64_t>(plain(element)), dtype);
}

}  // namespace hone
