#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lab/tpu/hlo.h"

// The raw measurements of TpuGraphs: messages TuningData (kernels with tiles) and ModuleTuningData
// (a module with layouts). Untrusted.

namespace hone::tpu {

struct TuningRun {
  bool has_tile = false, has_layout = false, has_error = false, is_default = false;
  int64_t nanoseconds = 0;  // compute_time_ns; 0: there is no profile
  // The bounds of a tile.
  Integers kernel = {}, output = {}, input = {};
  // The layout: per configurable node its tensors (output, input, kernel), each minor to major;
  // empty: the compiler chooses.
  std::vector<std::vector<Integers>> nodes = {};

  // Errors and times of 1 ns and less tell nothing.
  bool is_timed() const { return !has_error && nanoseconds > 1; }
};

struct TuningModule {
  HloModule module = {};
  uint64_t fingerprint = 0;
  std::vector<TuningRun> runs = {};
  // For layouts: the configurable nodes, as positions of instructions over all computations in the
  // order of the file.
  Integers config_nodes = {};
};

inline constexpr size_t kMaxTuningBytes = size_t{1} << 28;
// The limits of a file.
inline constexpr size_t kMaxModules = 1 << 16;
inline constexpr size_t kMaxInstructions = 1 << 22;
inline constexpr size_t kMaxRuns = 1 << 22;
// Memory for each byte of the file, beyond the bytes that are free for any file.
inline constexpr size_t kMaxTuningInflation = 32, kFreeTuningBytes = size_t{16} << 20;

// A TuningData, or a ModuleTuningData alone: one that has other fields than a list of messages.
Result<std::vector<TuningModule>> read_tuning_data(const std::filesystem::path& path);
// The same for a file in memory; `where` names it in errors.
Result<std::vector<TuningModule>> parse_tuning_data(std::span<const std::byte> file,
                                                    std::string_view where);

}  // namespace hone::tpu
