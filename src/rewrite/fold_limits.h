#pragma once

#include <cstdint>

namespace hone {

// The memory that computing with constants may take in the reference. A computation that needs more
// is left to the program. `bytes` is the size of the constants and the results. An element of 1
// byte and less takes 8 on the way.
inline int64_t most_bytes_to_fold(int64_t bytes) {
  constexpr int64_t kLeast = int64_t{64} << 20, kTimes = 64;
  return kLeast + kTimes * bytes;
}

}  // namespace hone
