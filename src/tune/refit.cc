#include "tune/refit.h"

#include <cmath>

#include "kernel/algorithms/algorithm.h"
#include "learn/least_squares.h"

namespace hone {
namespace {

// Equations that say that a slope is 0, for each feature of those that differ.
constexpr double kPull = 0.5;
constexpr double kSame = 1e-4;  // deviations of a feature that says nothing

}  // namespace

Refit::Refit(const std::shared_ptr<const KernelFacts>& facts, const Target& target, int64_t threads)
    : analytic_(facts, target, {}, threads) {}

// Blocks of a GPU have none of these features, so all of them are alike.
Features Refit::features_of(const Schedule& schedule) {
  Features features;
  if (!def_of(schedule.algorithm()).is_for_gpu()) analytic_.describe(schedule, features);
  return features;
}

void Refit::keep(const Schedule& schedule, double price, double seconds) {
  timed_.push_back({features_of(schedule), std::log(seconds / price)});
  is_fitted_ = false;
}

void Refit::fit() {
  is_fitted_ = true;
  level_ = 0;
  for (const Timed& each : timed_) level_ += each.residual / static_cast<double>(timed_.size());
  std::vector<size_t> used;
  std::vector<double> factors;
  for (size_t f = kKernelFeatures; f < kFeatures; ++f) {
    mean_[f] = sum_[f] / asked_;
    const double variance = squares_[f] / asked_ - mean_[f] * mean_[f];
    if (variance <= kSame * kSame) continue;
    used.push_back(f);
    factors.push_back(1 / std::sqrt(variance));
  }
  LeastSquares problem(used.size());
  std::vector<double> row(used.size());
  for (const Timed& each : timed_) {
    for (size_t u = 0; u < used.size(); ++u)
      row[u] = factors[u] * (static_cast<double>(each.features.all()[used[u]]) - mean_[used[u]]);
    problem.add(row, each.residual - level_);
  }
  for (size_t u = 0; u < used.size(); ++u) {
    row.assign(used.size(), 0);
    row[u] = std::sqrt(kPull * static_cast<double>(used.size()));
    problem.add(row, 0);
  }
  const std::vector<double> slopes = problem.solve();
  slope_ = {};
  for (size_t u = 0; u < used.size(); ++u) slope_[used[u]] = factors[u] * slopes[u];
}

void Refit::correct(std::span<const Schedule> schedules, std::span<double> prices) {
  std::vector<Features> all;
  for (const Schedule& schedule : schedules) {
    all.push_back(features_of(schedule));
    ++asked_;
    for (size_t f = kKernelFeatures; f < kFeatures; ++f) {
      const auto x = static_cast<double>(all.back().all()[f]);
      sum_[f] += x;
      squares_[f] += x * x;
    }
  }
  if (timed_.size() < kLeast) return;
  if (!is_fitted_) fit();
  for (size_t i = 0; i < schedules.size(); ++i) {
    double residual = level_;
    for (size_t f = kKernelFeatures; f < kFeatures; ++f)
      residual += slope_[f] * (static_cast<double>(all[i].all()[f]) - mean_[f]);
    prices[i] *= std::exp(residual);
  }
}

}  // namespace hone
