#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ir/reference/eval.h"

// Indices that are elements of a tensor, in the evaluations of ops that find elements by data.

namespace hone {

// The number that an index element stands for; u64 beyond int64 saturates, which is out of range
// anyway.
template <class Int>
int64_t index_value(DType type, const Int& image) {
  int64_t value = plain(image);
  if (type == DType::u64 && value < 0) return std::numeric_limits<int64_t>::max();
  return value;
}

// Where a window of a dim begins, so that it lies inside.
inline int64_t clamped_start(int64_t start, int64_t size, int64_t window) {
  return std::clamp<int64_t>(start, 0, size - window);
}

}  // namespace hone
