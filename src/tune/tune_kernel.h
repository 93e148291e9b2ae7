#pragma once

#include <functional>

#include "cost/cost.h"
#include "search/search.h"
#include "tune/measured_kernels.h"

// The best schedule of one kernel, found by measuring.

namespace hone {

struct TuneKernelOptions {
  MeterOptions meter = {};
  SearchOptions search = {};             // trials are candidates that the search asks about
  std::string_view by = "evolutionary";  // a row of searches.def
  const Search* own_search = nullptr;    // in its place
  // The share of candidates of a search that are measured: the cheapest by price.
  double measured_share = 0.25;
  // Schedules that are measured first, such as those of similar kernels; the search begins with the
  // fastest of them and of the kernel's own.
  std::vector<Schedule> first = {};
  // Hears how many candidates have a time or have none to have, after each batch.
  std::function<void(int64_t measured)> stepped = {};
};

struct TunedKernel {
  Schedule schedule;     // that it began with, unless another is surely faster
  double seconds = 0;    // of a launch, as the last race says
  double before = 0;     // the same of the schedule that it began with
  int64_t trials = 0;    // schedules that were looked at
  int64_t measured = 0;  // candidates of different code that have a time, or have none to have
  int64_t needed = 0;    // of these, until one was within 1 % of the fastest
  int64_t compiles = 0;
  bool is_changed() const { return seconds < before; }
  // The schedules that were faster than the first one in the last race, the fastest first.
  std::vector<Schedule> faster = {};
};

// Searches the space of a kernel from the schedule that it has, by the price and the times of
// TimedSchedules. In the end the best few are raced against the start.
Result<TunedKernel> tune_kernel(const std::shared_ptr<const KernelFacts>& facts,
                                const Schedule& start, const Target& target, const Cost& cost,
                                MeasuredKernels& known, const TuneKernelOptions& options);

}  // namespace hone
