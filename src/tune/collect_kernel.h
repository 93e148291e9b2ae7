#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "cost/cost.h"
#include "cost/plan_cost.h"
#include "learn/data_set.h"
#include "plan/edit.h"
#include "tune/kernel_timer.h"

// Kernels for data sets, and schedules of them as searches visit them.

namespace hone {

// A kernel of a default plan.
struct DefaultKernel {
  std::shared_ptr<const KernelFacts> facts;
  Schedule planned;
  double price = 0;  // seconds of a launch
};

// Smaller ones, by price, do not decide how long a program takes.
inline constexpr double kLeastKernelSeconds = 5e-6;
// The same on a GPU, where most kernels of a model are small.
inline constexpr double kLeastGpuKernelSeconds = 1e-6;
inline double least_kernel_seconds(const Target& target) {
  return target.gpu ? kLeastGpuKernelSeconds : kLeastKernelSeconds;
}

// The different kernels of the graph's default plan, the dearest first. They have schedules to
// choose from and cost at least `least_seconds`; none: least_kernel_seconds(). The graph is
// prepared.
Result<std::vector<DefaultKernel>> default_kernels(const Graph& graph, const Target& target,
                                                   const Cost& cost, int64_t threads,
                                                   std::optional<double> least_seconds = {});

// The first of each list, then the second of each and so on, `count` at most: a few kernels are of
// many programs.
template <class T>
std::vector<T> in_turns(std::vector<std::vector<T>> lists, size_t count) {
  std::vector<T> all;
  for (size_t i = 0, left = 1; left > 0 && all.size() < count; ++i) {
    left = 0;
    for (std::vector<T>& list : lists) {
      if (i >= list.size()) continue;
      ++left;
      if (all.size() < count) all.push_back(std::move(list[i]));
    }
  }
  return all;
}

// The planner's plan. The graph is prepared.
Result<Plan> default_plan(const Graph& graph, const Target& target, const Cost& cost,
                          int64_t threads, const CancelToken* cancel = nullptr);
// The step's kernel, if there is something to choose of it.
Result<std::optional<DefaultKernel>> kernel_at(const FrameEditor& frame, uint32_t step,
                                               PlanCost& price);
// Kernels, as default_kernels() tells them, of plans that join and split groups of the default one.
// `plans` is the number of these plans, each a few edits away at most. Kernels of the default plan
// are not among them.
Result<std::vector<DefaultKernel>> kernels_of_other_groups(const Graph& graph, const Target& target,
                                                           const Cost& cost, int64_t threads,
                                                           size_t plans, uint64_t seed);

// The time of the planner's schedule; infinity: it cannot be measured. Errors end all measuring.
Result<KernelTime> time_planned(const DefaultKernel& kernel, const Target& target,
                                MeasuredKernels& known, const MeterOptions& meter);

// The same as far as it is known already, by code or, of another hone's code, by schedule.
Result<std::optional<KernelTime>> known_time(const DefaultKernel& kernel, const Target& target,
                                             MeasuredKernels& known, const MeterOptions& meter);

// Puts kernels of a program into the set and its log.
Status add_kernels(DataSet& set, const std::string& program, KernelOrigin origin,
                   std::span<const DefaultKernel> kernels);

struct CollectOptions {
  int64_t schedules = 64;  // that are asked for; some are the same code, or cannot be carried out
  uint64_t seed = 1;
  double seconds = std::numeric_limits<double>::infinity();
  const CancelToken* cancel = nullptr;
};

// Measures schedules of the timer's kernel: the planned one, half by a search that draws them, half
// by an evolution by measured times. The same options ask for the same schedules as long as times
// are known. False: there was no time for all.
Result<bool> collect_schedules(const DefaultKernel& kernel, const Target& target,
                               const CollectOptions& options, KernelTimer& timer);

}  // namespace hone
