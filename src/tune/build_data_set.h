#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "ir/graph.h"
#include "learn/data_set.h"
#include "learn/kernel_data.h"
#include "tune/kernel_meter.h"
#include "tune/measured_kernels.h"

// Data sets by measuring: docs/datasets.md. All that is measured is on disk at once, so that a
// build that was broken off goes on where it was.

namespace hone {

// A program by its name in the set. It is loaded only if the set does not have it.
struct NamedProgram {
  std::string name;
  std::function<Result<Graph>()> load;
};

enum class DataTask : uint8_t {
  tile,    // kernels of default plans, by many schedules
  fusion,  // kernels of plans with other groups, too, by the planner's schedule alone
};

class ProgramCollector;

struct BuildOptions {
  DataTask task = DataTask::tile;
  const ProgramCollector* collector = nullptr;  // whole programs by it, in place of kernels
  double seconds = std::numeric_limits<double>::infinity();  // for measuring
  double kernel_seconds = 20;  // of tiles, for a kernel: what is not measured then is left out
  size_t kernels = SIZE_MAX;   // the most, of all programs
  int64_t schedules = 64;      // that are asked for, of a kernel
  size_t plans = 400;          // of a program, other than the default one
  int64_t threads = 1;
  bool is_cold = false;  // inputs are not in caches when a launch begins
  // The folder has no more packed_bytes(). If they are limited, a quarter of them and of the
  // seconds is for what programs are.
  int64_t most_bytes = INT64_MAX;
  double most_drift = MeterOptions().most_drift;
  double most_noise = kMostNoise;  // of a time: it is measured once more
  int64_t seed = 1;
  std::string version = {};  // of hone
  // For DataSetInfo::probe, if the set has none: beside `seconds`. 0: there is none.
  double probe_seconds = 0;
  std::shared_ptr<const CudaDevice> device = nullptr;  // of a GPU's kernels
  const Log* from = nullptr;   // what it has of the kernels is taken, and not measured again
  const Cost* cost = nullptr;  // of the planner
  const CancelToken* cancel = nullptr;
  Progress* progress = &no_progress();  // counts kernels
};

// All files count, each of them packed by gzip: about the size of an archive.
int64_t packed_bytes(const std::string& folder);

// How kernels are measured.
MeterOptions meter_options(const BuildOptions& options);

// The data that was collected of a program.
struct CollectedPlans {
  size_t plans = 0, kernels = 0;
  size_t whole = 0;                 // runs, now
  std::vector<double> errors = {};  // of composed times: composed / whole, by whole run
  bool is_done = false;             // all that was asked for is known
};

// Another task: what a set gets to know of whole programs. build_data_set() prepares the programs,
// adds the kernels of their default plans to the set, and divides the time.
class ProgramCollector {
 public:
  virtual ~ProgramCollector() = default;
  virtual std::string_view what() const = 0;  // it collects: "plans"
  // Tells whether the set has all that is asked for of the program.
  virtual Result<bool> is_done(const DataSet& set, const std::string& program,
                               const BuildOptions& options) const = 0;
  // `is_over` says whether a share of the program's time is over. An error leaves the program out.
  virtual Result<CollectedPlans> collect(
      DataSet& set, const std::string& program, Graph graph, const Target& target,
      MeasuredKernels& known, const BuildOptions& options,
      const std::function<bool(double share)>& is_over) const = 0;
};

struct BuiltSet {
  int64_t programs = 0, kernels = 0;  // that the set has
  int64_t collected = 0;              // kernels that have all their schedules
  int64_t wanted = 0;                 // kernels that were to be collected
  int64_t failed = 0;                 // of these: they cannot be measured
  int64_t taken = 0;                  // records, from the other log
  int64_t compiles = 0, reused = 0;
  int64_t refused = 0;                     // races
  std::string_view what = {};              // a collector collects
  int64_t plans = 0, whole = 0;            // of programs, by a collector; whole runs
  std::vector<double> errors = {};         // of composed times: composed / whole, by run
  std::vector<std::string> left_out = {};  // programs and kernels, and why
  bool was_cancelled = false;
  double seconds = 0;
};

// Adds the programs to the set in the folder, which may be new, and measures. For tiles and fusion
// it takes one kernel of each program in turn, the dearest first, but those of more than 2 ms last.
// With a collector it goes program by program; one that lacks something goes on. The target is this
// machine, a restriction of it, or the GPU of the options.
Result<BuiltSet> build_data_set(const std::string& folder, std::span<const NamedProgram> programs,
                                const Target& target, const BuildOptions& options);

}  // namespace hone
