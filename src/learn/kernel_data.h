#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "learn/data_set.h"
#include "learn/fit_prices.h"

// Kernels with what their schedules took, and the programs that have them: what prices learn from.
//
//   const KernelData data = HONE_TRY(load_kernel_data("set"));
//   const ProgramSplit split = HONE_TRY(random_split(programs_of(data), seed));
//   for (const KernelSample& kernel : part(data, split, Part::train)) ...

namespace hone {

struct KernelSample {
  TimedKernel timed;  // facts, schedules, seconds; the planner's schedule first
  // For each time: a standard deviation, relative to it, by how far places in memory differ and by
  // how far the planner's schedule drifted in the same race.
  std::vector<double> noise;
  std::vector<std::vector<double>> runs;     // of each schedule: its time in each race that counts
  std::string kind;                          // kernel_kind()
  std::vector<std::string> programs;         // that have the kernel, sorted
  KernelOrigin origin = KernelOrigin::plan;  // where it was first found
};

struct KernelData {
  Target target;
  std::optional<Target> probe = {};  // DataSetInfo::probe
  int64_t threads = 1;
  std::string conditions;
  std::vector<KernelSample> kernels;  // in the order in which programs have them
  // The records that are left out.
  int64_t duplicates = 0;  // records of a schedule, or of the same code, beside the first: merged
  int64_t noisy = 0;       // records that places in memory disagree about by more than kMostNoise
  int64_t slow = 0;        // records of a slow machine: kMostSlowdown
  int64_t unfit = 0;       // records whose schedule this version of hone does not take
  int64_t failed = 0;      // records without a time
  int64_t left_out = 0;    // kernels without the planner's schedule, or with too few of them
};

inline constexpr double kMostNoise = 0.3;
// If a run takes more than this many times the least of the same code, the machine was slower in
// its race.
inline constexpr double kMostSlowdown = 1.25;
inline constexpr size_t kLeastSchedules = 4;  // of a kernel, to say something about their order

// The schedule that a record of a kernel is of (Record::choice).
Result<Schedule> schedule_of(const std::string& choice);

// Reads the data set in a folder. Errors name damaged files, a text that is not the kernel that it
// stands for, and a record of another target or of other conditions. Records without any program
// are an error, too.
Result<KernelData> load_kernel_data(const std::string& folder);
Result<KernelData> load_kernel_data(const DataSet& set);
// The same for prices in absolute time: the kernels of plans with other groups and layouts, too,
// each with the planner's schedule alone.
Result<KernelData> load_fusion_data(const std::string& folder);
Result<KernelData> load_fusion_data(const DataSet& set);

std::vector<std::string> programs_of(const KernelData& data);  // sorted

// ---- Splits ------------------------------------------------------------------------------------

enum class Part : uint8_t { train, validation, test };
inline constexpr std::array kParts = {Part::train, Part::validation, Part::test};
std::string_view name(Part part);

// Programs by part. As text, a line for each, "test zoo:resnet50"; # begins a comment.
struct ProgramSplit {
  std::array<std::vector<std::string>, 3> parts;  // by Part, each sorted
  std::vector<std::string>& of(Part part) { return parts[static_cast<size_t>(part)]; }
  const std::vector<std::string>& of(Part part) const { return parts[static_cast<size_t>(part)]; }
  bool operator==(const ProgramSplit&) const = default;
};

// A program in two parts is an error, and so is one that is named twice, also by the name of its
// files: zoo:alexnet and zoo_alexnet. `file` is for error texts.
Result<ProgramSplit> parse_split(std::string_view text, std::string_view file);
Result<ProgramSplit> read_split(const std::string& path);
std::string print(const ProgramSplit& split);

struct SplitShares {
  double validation = 0.15;
  double test = 0.2;
};
// Programs at random, one at least for each part whose share is positive. Programs of one family,
// as "zoo:resnet18" and "zoo:resnet50", are in one part: they have similar kernels. The same seed
// gives the same split.
Result<ProgramSplit> random_split(std::span<const std::string> programs, uint64_t seed,
                                  const SplitShares& shares = {});
// The letters that a program's name begins with, behind "zoo:". For any other name with a colon in
// it, such as "random:3", all of it.
std::string_view family_of(std::string_view program);

// True if the data has all programs of the split, which are sorted.
Status check(const ProgramSplit& split, std::span<const std::string> programs);
Status check(const ProgramSplit& split, const KernelData& data);
// The kernels of a part. One that programs of several parts have counts for the first of test,
// validation, train alone; one that no program of the split has counts for none.
std::vector<KernelSample> part(const KernelData& data, const ProgramSplit& split, Part part);

}  // namespace hone
