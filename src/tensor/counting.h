#pragma once

#include <algorithm>
#include <numeric>

#include "tensor/type.h"

namespace hone {

// The numbers from `first` to below `end`; there may be none.
inline Ints counting(int64_t first, int64_t end) {
  Ints values(static_cast<size_t>(std::max<int64_t>(end - first, 0)));
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace hone
