#pragma once

#include <cstdint>

// The parts of a Target that a CPU lacks. A Target with a Gpu is a GPU: its cores are the
// processors of the chip (SMs), and its caches end with the one that all of them share.

namespace hone {

struct Gpu {
  int64_t capability = 0;          // ten times the version: 80, 89, 90
  int64_t warps = 0;               // of 32 lanes, that one SM holds at a time
  int64_t registers = 0;           // of 32 bits, of one SM
  int64_t shared_bytes = 0;        // of one SM
  int64_t block_shared_bytes = 0;  // that one block may ask for
  double launch = 0;               // seconds from a kernel to the next in a graph

  bool operator==(const Gpu&) const = default;
};

inline constexpr int64_t kWarpLanes = 32;
inline constexpr int64_t kGroupCapability = 90;  // the only one whose warpgroups multiply
inline constexpr int64_t kMinCapability = 80;    // older ones lack asynchronous copies

}  // namespace hone
