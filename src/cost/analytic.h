#pragma once

#include "cost/cost.h"
#include "cost/prices.h"
#include "target/target.h"

namespace hone {

// The price that needs no measurement. It comes from what the Target says of the machine, by
// coefficients. docs/cost.md has the terms.
class AnalyticCost : public Cost {
 public:
  // The target is a CPU: analytic_cost() (cost/gpu_cost.h) takes all.
  explicit AnalyticCost(Target target, Prices prices = {});

  std::string version() const override;
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override;
  double copy(double bytes) const override;
  double command() const override;

 private:
  const Target target_;
  const Prices prices_;
};

}  // namespace hone
