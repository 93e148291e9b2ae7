#pragma once

#include <algorithm>

#include "kernel/facts.h"
#include "target/target.h"

// Prices of kernels whose algorithm says what a block of threads does. Nobody timed one on a GPU.
// The rates of warpgroups are those of products like theirs.

namespace hone {

struct BlockWinogradRoles;

// The number of the formulas by which GPUs' kernels are priced, for files of what was learned
// beside them: a file outlives the hone that made it. Whoever changes one raises it, as a test
// demands. Plans in a cache do not need it, since their keys know the sources.
inline constexpr int64_t kGpuFormulas = 6;

// Seconds of a kernel on a GPU.
struct GpuTimes {
  double launch = 0, arithmetic = 0, latency = 0, memory = 0, access = 0;
  double transforms = 0;  // of a winograd: launches ahead of its products and behind them
  // The four in the middle overlap, but a tenth of those that are not the largest is seen.
  static constexpr double kSeen = 0.1;
  double total() const {
    const double largest = std::max({arithmetic, latency, memory, access});
    return launch + transforms + (1 - kSeen) * largest +
           kSeen * (arithmetic + latency + memory + access);
  }
  bool operator==(const GpuTimes&) const = default;
};

// Rates that all algorithms share. Threads start instructions at a part of the peak of their SM. A
// thread waits for each of its operations.
inline constexpr double kGpuSlotsOfPeak = 0.25;  // instructions per operation of the peak
inline constexpr double kGpuStep = 2e-8;         // seconds from an operation to the next
inline constexpr double kGpuSector = 32;         // bytes that an access takes at least
inline constexpr double kGpuReached = 0.9;       // of the bandwidth of memory
inline constexpr double kGpuOverlap = 4;  // operations of a thread under way, if none needs another
inline constexpr double kGpuCombining = 30;     // operations in which a warp combines its numbers
inline constexpr double kGpuBarrierSlots = 30;  // in which a block waits for its last thread

// Arithmetic, latency, access, and memory beside that of the arrays; infinite, if the algorithm
// does not take the body.
GpuTimes block_rows_times(const KernelFacts& facts, const Schedule& schedule, const Target& target);
GpuTimes block_tiles_times(const KernelFacts& facts, const Schedule& schedule,
                           const Target& target);
GpuTimes block_chain_times(const KernelFacts& facts, const Schedule& schedule,
                           const Target& target);
GpuTimes block_sums_times(const KernelFacts& facts, const Schedule& schedule, const Target& target);
GpuTimes block_copy_times(const KernelFacts& facts, const Schedule& schedule, const Target& target);
// All, also the launch and the arrays, which three launches share.
GpuTimes block_winograd_times(const KernelFacts& facts, const BlockWinogradRoles& roles,
                              const Schedule& schedule, const Target& target);

}  // namespace hone
