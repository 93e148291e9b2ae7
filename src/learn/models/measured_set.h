#pragma once

#include <span>
#include <string>
#include <vector>

#include "learn/kernel_data.h"

// The kernels of one target, as one of several sets that a model learns from.

namespace hone {

struct MeasuredSet {
  Target target;     // that schedules are priced for
  Target processor;  // the same with rates that count as measured: those of features
  int64_t threads = 1;
  std::vector<KernelSample> kernels;
};

// A set that was made with a probe has its rates. Another one gets them from its own kernels.
MeasuredSet measured_set(const KernelData& data);

// Rates that the times of the kernels imply. The clock comes first: from the median error of prices
// of the planner's schedules, by the third of the kernels with the least shares of memory. Then the
// analytic price is fitted to a hundred kernels, as 'hone calibrate' does; coefficients of caches
// change the rates of these.
Target with_fitted_rates(Target target, std::span<const KernelSample> kernels, int64_t threads);

// Names what has one kind of core, whatever instructions it is restricted to: the unit by which
// processors are left out. "AMD EPYC, 32 KiB, 1 MiB"
std::string processor_of(const Target& target);

}  // namespace hone
