#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/tpu/graph.h"

// Files of data sets for programs by layouts: the arrays of TpuGraphs (lab/tpu/graph.h), and what
// hone knows besides. docs/datasets.md has names and types. `layout/NAME-random.npz` and
// `layout/NAME-default.npz` are of one program.

namespace hone {

// Indexed by configuration. Empty: the file does not say.
struct LayoutTimes {
  std::vector<float> priced = {};       // ns of a run, by price
  std::vector<float> noise = {};        // of the time: a deviation, relative to it
  std::vector<float> known = {};        // the share of the time that was measured
  std::vector<float> whole = {};        // ns of a run as it was measured; 0: it was not
  std::vector<float> whole_noise = {};  // half its interval of 95 %, relative to it

  bool operator==(const LayoutTimes&) const = default;
};
struct LayoutColumn {
  std::string_view array;  // its name in a file
  std::vector<float> LayoutTimes::* values;
  float least, most;
};
inline constexpr float kMostTime = 1e15F;
inline constexpr LayoutColumn kLayoutColumns[] = {
    {"config_runtime_priced", &LayoutTimes::priced, 1e-3F, kMostTime},
    {"config_runtime_noise", &LayoutTimes::noise, 0, 1e3F},
    {"config_known", &LayoutTimes::known, 0, 1.001F},
    {"config_runtime_whole", &LayoutTimes::whole, 0, kMostTime},
    {"config_runtime_whole_noise", &LayoutTimes::whole_noise, 0, 1e3F}};

// How far a collection has come.
struct LayoutProgress {
  int64_t seed = 0, plans = 0;  // that assignments were drawn by
  int64_t whole = 0;            // the number of first ones that were run whole, or cannot be
  bool has_kernels = false;     // all kernels have their times, or have none to have
  bool operator==(const LayoutProgress&) const = default;
};

struct LayoutFile {
  tpu::LayoutGraph layout;
  LayoutTimes times = {};
  std::string program = {};    // empty: the file's name tells
  std::string priced_by = {};  // a Cost's version
  uint64_t target = 0;         // a fingerprint; 0: it does not say
  std::optional<LayoutProgress> progress = {};
};

std::vector<NamedTensor> arrays_of(const LayoutFile& file);
// Errors name the array that is missing, of another type or shape, or has a number that cannot be.
Result<LayoutFile> layout_file_of(std::span<const NamedTensor> arrays);
Result<LayoutFile> read_layout_file(const std::filesystem::path& path);
// Without the rest of the file. None: there is no file, or one that does not say.
Result<std::optional<LayoutProgress>> read_progress(const std::filesystem::path& path);

// A kernel with tiles, and what hone knows besides.
struct TileFile {
  tpu::TileGraph tile;
  std::string program = {};  // one that has the kernel; empty: the file's name tells
  uint64_t target = 0;       // a fingerprint; 0: it does not say
};
std::vector<NamedTensor> arrays_of(const TileFile& file);
Result<TileFile> tile_file_of(std::span<const NamedTensor> arrays);

// ---- Names --------------------------------------------------------------------------------------

std::filesystem::path layout_path(std::string_view set, std::string_view program, bool is_random);
// As the name of a file says, as far as it does: "zoo:resnet50" of "zoo_resnet50-random".
std::string program_of_file(const std::filesystem::path& file);
// "random" or "default", near it; "": no file of a set.
std::string_view sort_of_file(const std::filesystem::path& file);

}  // namespace hone
