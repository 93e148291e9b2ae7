#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "tune/kernel_meter.h"
#include "tune/kernel_uses.h"
#include "tune/measured_kernels.h"

// Where one kernel is a large part of a plan, a few schedules of it are timed before the plan is
// carried out. A price is wrong about some kernels, and one long kernel loses more than ten gain.

namespace hone {

// The times of schedules of a kernel that ran in turns, the planned one first. Infinity: it cannot
// be carried out. Errors: the planned one cannot, or somebody cancelled.
using FirstRace = std::function<Result<std::vector<KernelTime>>(
    const KernelUse& use, std::span<const Schedule> schedules, const MeterOptions& meter)>;

struct FirstTimesOptions {
  double seconds = 2;             // for all kernels of a plan
  double least_share = 0.15;      // of the plan's price: smaller ones have their price
  double least_seconds = 100e-6;  // of all launches in a run: less is not worth a second
  bool measures = true;           // else what an earlier process has measured counts alone
  // The log of what is known and what is kept; it may be null, and outlives this. Asked once there
  // is something to time.
  std::function<Log*()> log = {};
  std::string version = {};  // of hone, for the log
  const CancelToken* cancel = nullptr;
  std::function<void(std::string_view)> told = {};  // a line for each schedule that changes
  FirstRace race = {};                              // in place of a race on this machine
};

// Schedules of the kernel that may be the fastest, the planned one first. The Cost, its baseline
// and planners without one of the algorithms choose them; none is surely dearer.
std::vector<Schedule> first_candidates(const KernelUse& use, const Target& target, const Cost& cost,
                                       int64_t threads);

// True if a time is less than another one by more than noise.
bool is_surely_faster(const KernelTime& other, const KernelTime& usual);

// The complete plan of the prepared graph, with the schedules that are surely faster by their
// times. All times of a kernel that the log has count; else its candidates run in turns, if there
// is time for it.
Result<Plan> with_first_times(const Graph& graph, Plan plan, const Target& target, const Cost& cost,
                              const FirstTimesOptions& options);

}  // namespace hone
