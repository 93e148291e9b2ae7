#pragma once

#include <vector>

#include "alloc/problem.h"

// The uses of buffers, for code that checks placements. Placers have their own view of buffers
// (blocks.h), so that a fault there is seen here.

namespace hone {

// The bytes [low, high) of a buffer are in use at the moments [begin, end).
struct MemoryUse {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// Sorted by time; none is empty.
std::vector<MemoryUse> uses_of(const MemoryBuffer& buffer);

}  // namespace hone
