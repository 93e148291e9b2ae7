#pragma once

#include <map>

#include "kernel/kernel_body.h"

namespace hone {

// A price for the parts that programs are made of, in seconds. The analytic one is here; prices
// that are learned or measured implement the same. price() makes that of a Program from it.
class Cost {
 public:
  virtual ~Cost() = default;
  // One launch under a schedule that check_schedule() accepts, on at most so many threads. Symbols
  // count as their largest values.
  virtual double launch(const KernelBody& body, const Schedule& schedule,
                        int64_t threads) const = 0;
  virtual double copy(double bytes) const = 0;
  // Beginning a command, whatever it does.
  virtual double command() const = 0;
};

// From what the Target says of the machine; docs/cost.md has the terms.
class AnalyticCost : public Cost {
 public:
  explicit AnalyticCost(Target target) : target_(std::move(target)) {}

  double launch(const KernelBody& body, const Schedule& schedule, int64_t threads) const override;
  double copy(double bytes) const override;
  double command() const override;

 private:
  const Target target_;
};

}  // namespace hone
