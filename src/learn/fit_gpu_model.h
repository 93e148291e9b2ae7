#pragma once

#include <span>

#include "cost/gpu_model.h"
#include "learn/fit_prices.h"

namespace hone {

struct FittedGpuModel {
  GpuModel model;
  double loss_before = 0;  // the mean square of log(price / time), by the analytic price
  double loss_after = 0;   // never more
};

// The learned price of a GPU from times of its kernels. First the scales of terms: the largest term
// at one set of scales makes the price linear, and non-negative least squares give the next. Then
// the factors of each algorithm with enough times. Both take turns, and either begins: the better
// end counts. Deterministic. An error: there are no times.
Result<FittedGpuModel> fit_gpu_model(std::span<const TimedKernel> kernels, const Target& target);

}  // namespace hone
