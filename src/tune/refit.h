#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "cost/analytic_kernel.h"

namespace hone {

// Corrects prices of a kernel's schedules by what others of them took: a ridge regression of
// log(time / price) on the features that differ among its schedules.
class Refit {
 public:
  Refit(const std::shared_ptr<const KernelFacts>& facts, const Target& target, int64_t threads);

  // A schedule of this price took so long. Both are positive and finite.
  void keep(const Schedule& schedule, double price, double seconds);
  // Prices become those that count now: as they are before kLeast times are known.
  void correct(std::span<const Schedule> schedules, std::span<double> prices);

  static constexpr size_t kLeast = 8;

 private:
  struct Timed {
    Features features;
    double residual = 0;  // log(time / price)
  };
  Features features_of(const Schedule& schedule);
  void fit();

  AnalyticKernel analytic_;
  std::vector<Timed> timed_;
  // Sums over all schedules that were asked about.
  std::array<double, kFeatures> sum_ = {}, squares_ = {};
  double asked_ = 0;
  std::array<double, kFeatures> mean_ = {}, slope_ = {};
  double level_ = 0;
  bool is_fitted_ = false;  // to all of them
};

}  // namespace hone
