#pragma once

#include <span>

#include "cost/kernel_model.h"
#include "learn/fit_prices.h"
#include "target/target.h"

// A model on a processor that it has not seen, or not enough of. A few minutes of measuring move
// the last layers of its networks and the levels of kinds.

namespace hone {

struct AdaptedModel {
  KernelModel model;  // the given one, if no change is better for kernels that are left out
  bool is_changed = false;
  // Mean squares of errors of logarithms, of kernels that are left out in turn.
  double loss_before = 0, loss_after = 0;
};

// The model is of the target (model_on()). Each kernel counts alike, the order of its schedules
// more than their level. Last layers move as far as is best for kernels that are left out in turn:
// by ridge regression. Fewer than kLeastToAdapt kernels change nothing. Deterministic.
AdaptedModel adapt_model(const KernelModel& model, std::span<const TimedKernel> kernels,
                         const Target& target);
inline constexpr size_t kLeastToAdapt = 8;

}  // namespace hone
