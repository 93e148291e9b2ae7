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

// Names what has one kind of core, whatever instructions it is restricted to: the unit by which
// processors are left out. "AMD EPYC, 32 KiB, 1 MiB"
std::string processor_of(const Target& target);

}  // namespace hone
