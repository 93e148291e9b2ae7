#pragma once

#include "base/error.h"
#include "base/instructions.h"
#include "target/gpu.h"
#include "tensor/dtype.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A Target is a machine as plain data: its cores, vector units, caches and rates. Plans, prices and
// code are made for a Target, never for the machine at hand. docs/formats/target-text.md describes
// its text.

namespace hone {

struct CacheLevel {
  int64_t bytes = 0;
  int64_t cores = 1;            // that share it
  double bytes_per_second = 0;  // that one core reads while its data is here

  bool operator==(const CacheLevel&) const = default;
};

struct Target {
  std::string name;        // plans name it
  std::string cpu;         // what the processor calls itself; says nothing to the compiler
  std::optional<Gpu> gpu;  // none: a CPU. A GPU has the lowest isa, and no extensions
  Isa isa = Isa::v2;
  ExtensionSet extensions;
  int64_t cores = 1;
  std::vector<CacheLevel> caches;  // of data, from the nearest on; each larger than the one before
  int64_t memory_bytes = 0;
  double memory_one_core = 0;   // bytes per second that one core reads from memory
  double memory_all_cores = 0;  // and all cores together
  // Operations per second of one core by DType; a fused multiply-add is two. For i8 it is the
  // product of i8 and u8, added up in i32. 0: the machine has no unit for the type, which is then
  // computed in another one.
  std::array<double, kDTypeCount> peaks = {};
  double fork_join = 0;   // seconds to start work on all cores and to wait for its end
  bool measured = false;  // by probe_target(); otherwise rates are estimates or a person's

  Instructions instructions() const { return {isa, extensions}; }
  double peak(DType type) const { return peaks[static_cast<size_t>(type)]; }
  double& peak(DType type) { return peaks[static_cast<size_t>(type)]; }
  bool operator==(const Target&) const = default;
};

// This machine, as far as the process may use it: cores of its affinity and its control group,
// registers that the operating system saves. Rates are estimates (estimate.h). Unsupported if the
// processor is not x86-64 of level v2 or higher.
Result<Target> host_target();

// The target without the instructions above the level; a level that is not below the target's own
// changes nothing. Rates are scaled by the ratio of estimates, and no longer count as measured.
Target restricted(Target target, Isa isa);

// The name of a target that has none: "avx512-2c".
std::string default_name(const Target& target);

// True if the numbers make sense. Every Target that the compiler sees has passed this check.
Status check(const Target& target);

inline constexpr int64_t kMaxTargetText = 64 << 10;  // bytes

std::string print(const Target& target);
// Inverse of print; checks the target. `file` is for error texts, "file:line:column".
Result<Target> parse_target(std::string_view text, std::string_view file);

// Bounds of check(), which the parser applies where the number stands.
inline constexpr int64_t kMaxTargetCores = 65536;
inline constexpr int64_t kMaxTargetBytes = int64_t{1} << 50;
inline constexpr size_t kMaxCacheLevels = 8;
inline constexpr size_t kMaxTargetName = 200;  // bytes
inline constexpr double kMinTargetRate = 1;    // a second
inline constexpr double kMaxTargetRate = 1e18;
inline constexpr double kMaxForkJoin = 1;  // second
inline constexpr int64_t kMaxCapability = 999;
inline constexpr int64_t kMaxGpuWarps = 1024;  // and other numbers of one SM
inline constexpr int64_t kMaxGpuRegisters = int64_t{1} << 24;
inline constexpr int64_t kMaxGpuShared = int64_t{1} << 30;
inline constexpr double kMaxGpuLaunch = 1;  // second

}  // namespace hone
