#pragma once

#include <cmath>
#include <memory>

#include "cost/analytic.h"

namespace hone {

// An analytic price that is trusted with schedules alone, as a learned one is.
class TrustedPrice : public AnalyticCost {
 public:
  struct Says {
    double lead = 0;
    int64_t worth_measuring = 0;
    bool is_misled = false;  // dear schedules are cheap
  };
  TrustedPrice(const Target& target, const Says& says)
      : AnalyticCost(target), says_(says), baseline_(target) {}

  // No cache takes the plans of a price that is misled for those of the formula.
  std::string version() const override {
    return says_.is_misled ? "misled" : AnalyticCost::version();
  }
  const Cost* baseline() const override { return &baseline_; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(AnalyticCost::kernel(std::move(facts), threads), says_);
  }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(std::unique_ptr<PricedKernel> analytic, const Says& says)
        : analytic_(std::move(analytic)), says_(says) {}
    void price(std::span<const Schedule> schedules, double limit,
               std::span<double> seconds) override {
      analytic_->price(schedules, says_.is_misled ? INFINITY : limit, seconds);
      if (!says_.is_misled) return;
      for (double& each : seconds) each = 1e-9 / each;
    }
    bool is_surely_cheaper(const Schedule& other, const Schedule& usual) override {
      return seconds(other) < (1 - says_.lead) * seconds(usual);
    }
    std::optional<int64_t> worth_measuring() const override { return says_.worth_measuring; }

   private:
    const std::unique_ptr<PricedKernel> analytic_;
    const Says says_;
  };

  const Says says_;
  const AnalyticCost baseline_;
};

}  // namespace hone
