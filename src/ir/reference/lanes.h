#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace hone {

// The lines of elements along one axis of a row-major tensor. Two tensors that differ in that axis
// alone have lanes of the same numbers.
struct Lanes {
  int64_t count = 1;   // of lanes
  int64_t length = 1;  // of one lane
  int64_t step = 1;    // between neighbours of a lane

  Lanes(std::span<const int64_t> dims, int64_t axis) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) == axis) {
        length = dims[i];
      } else {
        count *= dims[i];
        if (static_cast<int64_t>(i) > axis) step *= dims[i];
      }
    }
  }

  int64_t first(int64_t lane) const { return lane / step * step * length + lane % step; }

  // body(from, to) on ranges of lanes.
  template <class Body>
  void parallel_for(ThreadPool& pool, Body&& body) const {
    constexpr int64_t kPieceElements = int64_t{1} << 15;
    pool.parallel_for(0, count, 1 + kPieceElements / (length + 1), body);
  }
};

}  // namespace hone
