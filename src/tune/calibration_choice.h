#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/fit_prices.h"
#include "tune/calibration_set.h"
#include "tune/price_race.h"

// Calibration measures one kernel after another: what the price is least sure of, and what matters
// most.

namespace hone {

// The share of the price of models that kernels of a kind have; in all 1. Models that cannot be
// planned do not count, nor do those after `seconds`, but for the first.
std::map<std::string, double, std::less<>> shares_of_kinds(std::span<const HeldBackModel> models,
                                                           const Target& target,
                                                           const std::shared_ptr<const Cost>& cost,
                                                           int64_t threads, double seconds);

class CalibrationChoice {
 public:
  // `price` is what plans are made by. Kinds without a share count as a twentieth.
  CalibrationChoice(std::vector<CalibrationKernel> kernels, const Target& target,
                    std::shared_ptr<const Cost> price, int64_t threads,
                    std::map<std::string, double, std::less<>> shares);

  // The next kernel: two that are fitted to, then one that is held out, as long as there are both.
  // It is the one with the most unsureness() times the share of its kind; equal ones in the
  // order in which they were given. None: all were taken.
  std::optional<CalibrationKernel> next();
  // A kernel has taken this, so that others of its kind are surer.
  void keep(std::string_view kind, const TimedKernel& timed);
  size_t left() const { return kernels_.size(); }

  // How far prices of the kernel's schedules may be off beside each other, a logarithm. The voices
  // of the price count, and how far prices of its kind were off.
  double unsureness(const CalibrationKernel& kernel) const;
  // `count` schedules, the planned one first. Half of the others may be faster than it as far as
  // the price knows: the best by gain and deviation of those drawn. The rest is drawn evenly.
  std::vector<Schedule> schedules_of(const CalibrationKernel& kernel, int64_t count, Rng rng) const;

 private:
  struct Kind {
    double squares = 0;  // a sum over its kernels: mean squares of errors beside each other
    double kernels = 0;
  };

  std::vector<CalibrationKernel> kernels_;
  std::vector<double> voices_;  // by kernel: what voices differ by
  const Target& target_;
  const std::shared_ptr<const Cost> price_;
  const int64_t threads_;
  const std::map<std::string, double, std::less<>> shares_;
  std::map<std::string, Kind, std::less<>> kinds_;
  size_t taken_ = 0;
};

}  // namespace hone
