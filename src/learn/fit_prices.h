#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cost/prices.h"
#include "kernel/facts.h"
#include "target/target.h"

// The coefficients of the analytic price, by what was measured.

namespace hone {

// A kernel with what some of its schedules have taken.
struct TimedKernel {
  std::shared_ptr<const KernelFacts> facts;
  std::vector<Schedule> schedules;
  std::vector<double> seconds;  // of a launch, by schedule; positive
};

// The analytic prices of its schedules.
std::vector<double> price_all(const TimedKernel& kernel, const Target& target, int64_t threads,
                              const Prices& prices);

struct FittedPrices {
  Prices prices = {};
  double loss_before = 0;  // of the defaults
  double loss_after = 0;   // never more
  bool is_default() const { return prices == Prices(); }
};

// Lowers the mean square of log(price / time), where each kernel counts alike: half of it says how
// long kernels take, half which of their schedules are faster. The logarithm is made linear at one
// set of coefficients after another, and non-negative least squares give the next. Then one
// coefficient after another is changed, for those that the price is not smooth in. Coefficients
// that no time tells apart stay near the default. Deterministic.
FittedPrices fit_prices(std::span<const TimedKernel> kernels, const Target& target,
                        int64_t threads);

}  // namespace hone
