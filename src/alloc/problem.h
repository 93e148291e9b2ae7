#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"

// The problem of placement: buffers must lie in memory so that no two that are in use at the same
// time overlap. Moments, sizes and offsets are any numbers that are not negative. Stretches of time
// and of memory are half open: a use that ends at a moment makes room for one that begins there.

namespace hone {

// A stretch of a buffer's life in which only its bytes [low, high) are in use: none, if both are
// equal.
struct MemoryGap {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// One buffer lies in another's memory: `shift` bytes behind where that begins. Results in place,
// views, and the parts of a concat are aliases; those of one buffer may overlap.
struct MemoryAlias {
  uint32_t of = 0;
  int64_t shift = 0;
};

struct MemoryBuffer {
  int64_t begin = 0;  // in use at the moments [begin, end)
  int64_t end = 0;
  int64_t size = 0;
  int64_t alignment = 1;               // divides its offset
  std::optional<int64_t> offset = {};  // where it must lie
  std::vector<MemoryGap> gaps = {};    // by time
  std::optional<MemoryAlias> alias = {};
  uint32_t space = 0;  // one of several memories; aliases share one
};

constexpr int64_t kNoCapacity = INT64_MAX;
constexpr uint32_t kMaxMemorySpaces = 64;

struct MemoryProblem {
  std::vector<MemoryBuffer> buffers;
  std::vector<int64_t> capacity = {};  // of each space; those behind have no limit

  int64_t capacity_of(uint32_t space) const {
    return space < capacity.size() ? capacity[space] : kNoCapacity;
  }
};

uint32_t space_count(const MemoryProblem& problem);  // at least 1

// True if the problem is well formed: times in order, nothing negative, gaps within lives and apart
// from each other, aliases without circles, sums that fit 62 bits. It need not have a
// solution. Errors name the buffer by its index: "buffer 3: ...".
Status check(const MemoryProblem& problem);

// The end of the last buffer of each space, or where two buffers overlap, or lie where they must
// not. Shares no code with what places them. Capacities are for the caller to compare.
Result<std::vector<int64_t>> heights_of(const MemoryProblem& problem,
                                        const std::vector<int64_t>& offsets);

}  // namespace hone
