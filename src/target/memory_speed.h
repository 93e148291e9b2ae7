#pragma once

#include <algorithm>

#include "target/target.h"

namespace hone {

// Bytes a second that memory delivers to some threads, one on each core. A thread gets no more
// than one core does, and all together no more than all cores. 0: the Target does not know.
inline double memory_speed(const Target& target, int64_t threads) {
  return std::min(static_cast<double>(threads) * target.memory_one_core, target.memory_all_cores);
}

}  // namespace hone
