#pragma once

#include <string_view>
#include <vector>

#include "cost/kernel_model.h"

// How far a model is to be trusted: what its networks say of kernels that they have not seen.

namespace hone {

// The answer of a network about a kernel that it has not seen.
struct JudgedKernel {
  std::string_view kind;
  size_t schedules = 0;
  double distance = 0;         // from the nearest kernel that it has seen
  double learned = 0;          // the logarithm of its regret,
  double analytic = 0;         // and that of the analytic price
  std::vector<double> slower;  // by kMeasuredCounts: regrets
  double lead = 0, gain = 0;   // of its choice over the planner's: by price; in truth, a logarithm
  double short_by = 0;         // the logarithm of the planner's time for one of its price
};

ModelTrust trust_by(std::vector<JudgedKernel> judged);

}  // namespace hone
