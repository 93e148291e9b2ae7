#include "learn/fit_prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "cost/analytic.h"
#include "cost/analytic_kernel.h"
#include "learn/least_squares.h"
#include "learn/models/train_kernel_model.h"

namespace hone {
namespace {

constexpr double Prices::* kMembers[] = {
#define HONE_PRICE(member, value, doc) &Prices::member,
#include "cost/prices.def"
};
constexpr size_t kCount = std::size(kMembers);
// Each coefficient for one of its default, so that all are of one size.
using Point = std::array<double, kCount>;

constexpr double kPull = 1e-4;   // what being twice the default counts in the loss
constexpr double kMost = 50;     // times the default
constexpr double kStep = 0.02;   // of a coefficient, to see what it does
constexpr int kRounds = 40;      // of least squares
constexpr int kDescents = 12;    // over all coefficients
constexpr double kWorth = 1e-7;  // of the loss: what lowers it by less ends the fit
constexpr double kFactors[] = {0.5, 0.75, 0.9, 1.1, 1.33, 2};

// A share of the rest hides behind the largest term.
double most_of(double Prices::* member) {
  return member == &Prices::not_hidden ? 1 / Prices().not_hidden : kMost;
}

// Four digits are for people, and more than times tell.
double rounded(double number) {
  if (number == 0) return 0;
  const double unit = std::pow(10, 3 - std::floor(std::log10(number)));
  return std::round(number * unit) / unit;
}

Prices prices_at(const Point& point) {
  Prices prices;
  for (size_t j = 0; j < kCount; ++j) prices.*kMembers[j] = rounded(prices.*kMembers[j] * point[j]);
  return prices;
}

class Fit {
 public:
  Fit(std::span<const TimedKernel> kernels, const Target& target, int64_t threads)
      : kernels_(kernels) {
    for (const TimedKernel& kernel : kernels)
      priced_.push_back(std::make_unique<AnalyticKernel>(kernel.facts, target, Prices(), threads));
    point_.fill(1);
    residuals_ = residuals(point_);
    loss_ = loss(residuals_, point_);
  }

  FittedPrices run() {
    FittedPrices fitted{.prices = {}, .loss_before = loss_, .loss_after = loss_};
    if (kernels_.empty()) return fitted;
    for (double before = std::numeric_limits<double>::infinity(); loss_ < (1 - 1e-3) * before;) {
      before = loss_;
      least_squares();
      descend();
    }
    fitted.prices = prices_at(point_);
    fitted.loss_after = loss_;
    return fitted;
  }

 private:
  // How far each price is from its time, and each from the others of its kernel, both weighted.
  std::vector<double> residuals(const Point& point) const {
    const Prices prices = prices_at(point);
    std::vector<double> all;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const TimedKernel& kernel = kernels_[k];
      std::vector<double> logs(kernel.schedules.size());
      priced_[k]->reprice(prices);
      priced_[k]->price(kernel.schedules, std::numeric_limits<double>::infinity(), logs);
      double mean = 0;
      const auto count = static_cast<double>(logs.size());
      for (size_t i = 0; i < logs.size(); ++i) {
        logs[i] = std::log(logs[i] / kernel.seconds[i]);
        mean += logs[i] / count;
      }
      const double weight = std::sqrt(0.5 / count / static_cast<double>(kernels_.size()));
      for (double each : logs) {
        all.push_back(weight * each);
        all.push_back(weight * (each - mean));
      }
    }
    return all;
  }

  // Infinite: some price is not a number.
  static double loss(std::span<const double> residuals, const Point& point) {
    double sum = 0;
    for (double each : residuals) sum += each * each;
    for (double each : point) sum += kPull * (each - 1) * (each - 1);
    return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
  }

  bool take(const Point& next) {
    std::vector<double> residuals = this->residuals(next);
    const double loss = Fit::loss(residuals, next);
    if (!(loss < loss_ * (1 - kWorth))) return false;
    point_ = next;
    residuals_ = std::move(residuals);
    loss_ = loss;
    return true;
  }

  // The change of the residuals when a coefficient grows, by coefficient.
  std::vector<std::vector<double>> slopes() const {
    std::vector<std::vector<double>> columns;
    for (size_t j = 0; j < kCount; ++j) {
      Point next = point_;
      const double step = kStep * std::max(next[j], 0.1);
      next[j] += step;
      columns.push_back(residuals(next));
      for (size_t i = 0; i < residuals_.size(); ++i) {
        double& slope = columns[j][i];
        slope = (slope - residuals_[i]) / step;
        if (!std::isfinite(slope)) slope = 0;
      }
    }
    return columns;
  }

  // The equations of the residuals, and those that hold the point near the defaults, and, by the
  // damping, near where it is: the price is not linear far from there.
  Point solve(const std::vector<std::vector<double>>& columns, double damping) const {
    LeastSquares problem(kCount);
    Point row;
    for (size_t i = 0; i < residuals_.size(); ++i) {
      double right = -residuals_[i];
      for (size_t j = 0; j < kCount; ++j) {
        row[j] = columns[j][i];
        right += row[j] * point_[j];
      }
      problem.add(row, right);
    }
    for (size_t j = 0; j < kCount; ++j) {
      row.fill(0);
      row[j] = std::sqrt(kPull);
      problem.add(row, row[j]);
      row[j] = std::sqrt(damping);
      problem.add(row, row[j] * point_[j]);
    }
    const std::vector<double> solved = problem.solve_non_negative();
    Point next;
    for (size_t j = 0; j < kCount; ++j) next[j] = std::min(solved[j], most_of(kMembers[j]));
    return next;
  }

  void least_squares() {
    double damping = 1e-3;
    for (int round = 0; round < kRounds && damping < 10; ++round) {
      const std::vector<std::vector<double>> columns = slopes();
      bool is_lower = false;
      while (!is_lower && damping < 10) {
        is_lower = take(solve(columns, damping));
        damping *= is_lower ? 0.2 : 5;
      }
    }
  }

  void descend() {
    bool is_lower = true;
    for (int round = 0; round < kDescents && is_lower; ++round) {
      is_lower = false;
      for (size_t j = 0; j < kCount; ++j)
        for (double factor : kFactors) {
          Point next = point_;
          next[j] = std::min(next[j] * factor, most_of(kMembers[j]));
          is_lower = take(next) || is_lower;
        }
    }
  }

  const std::span<const TimedKernel> kernels_;
  // For each kernel: facts are gathered, and chains are cut, once for all coefficients.
  std::vector<std::unique_ptr<AnalyticKernel>> priced_;
  Point point_;
  std::vector<double> residuals_;
  double loss_ = 0;
};

}  // namespace

std::vector<double> price_all(const TimedKernel& kernel, const Target& target, int64_t threads,
                              const Prices& prices) {
  std::vector<double> result(kernel.schedules.size());
  AnalyticCost(target, prices)
      .kernel(kernel.facts, threads)
      ->price(kernel.schedules, std::numeric_limits<double>::infinity(), result);
  return result;
}

FittedPrices fit_prices(std::span<const TimedKernel> kernels, const Target& target,
                        int64_t threads) {
  return Fit(kernels, target, threads).run();
}

// ---- Sets of kernels ----------------------------------------------------------------------------
namespace {

constexpr size_t kLeastOfLevel = 5;       // kernels that a clock stands on
constexpr double kMostOff = 8;            // times the estimate that a rate may be
constexpr double kMostClock = 3;          // the same of clocks
constexpr double kLeastFactor = 1.0 / 8;  // of a coefficient: 0 says that its term hides

// The share of memory in the terms of a price, also where it hides behind others; 1 without terms.
double share_of_memory(const TimedKernel& planned, const Target& target, int64_t threads) {
  AnalyticKernel priced(planned.facts, target, Prices(), threads);
  double all = 0, memory = 0;
  for (const PriceTerm& term : priced.terms(planned.schedules[0])) {
    all += term.seconds;
    if (term.name == "memory") memory = term.seconds;
  }
  return all > 0 ? memory / all : 1;
}

// The median logarithm of time over price of the planner's schedules, by the third of the kernels
// that has the least shares of memory. Wrong rates of caches hardly count in these. Too few: 0, the
// estimate stays.
double level_of(std::span<const KernelSample> kernels, const Target& target, int64_t threads) {
  std::vector<std::pair<double, double>> off;  // the share; the logarithm
  for (const KernelSample& kernel : kernels) {
    const TimedKernel planned = {.facts = kernel.timed.facts,
                                 .schedules = {kernel.timed.schedules[0]},
                                 .seconds = {kernel.timed.seconds[0]}};
    const double price = price_all(planned, target, threads, Prices())[0];
    off.emplace_back(share_of_memory(planned, target, threads),
                     std::log(planned.seconds[0] / price));
  }
  if (off.size() < kLeastOfLevel) return 0;
  std::ranges::sort(off);
  std::vector<double> least;
  for (size_t k = 0; k < std::max(kLeastOfLevel, off.size() / 3); ++k)
    least.push_back(off[k].second);
  std::ranges::nth_element(least, least.begin() + std::ssize(least) / 2);
  return least[least.size() / 2];
}

void scale_rate(double& rate, double by) {
  rate = std::clamp(rate * std::clamp(by, 1 / kMostOff, kMostOff), kMinTargetRate, kMaxTargetRate);
}

// Some hundred kernels say what rates are, and a fit to all of a large set takes minutes.
constexpr size_t kMostOfRates = 100;
std::vector<KernelSample> thinned(std::span<const KernelSample> kernels) {
  std::vector<KernelSample> some;
  const size_t step = (kernels.size() + kMostOfRates - 1) / kMostOfRates;
  for (size_t k = 0; k < kernels.size(); k += step) some.push_back(kernels[k]);
  return some;
}

std::vector<TimedKernel> some_of(std::span<const KernelSample> kernels, size_t most) {
  std::vector<TimedKernel> some;
  for (const KernelSample& kernel : kernels) {
    const TimedKernel& timed = kernel.timed;
    const size_t count = timed.seconds.size(), step = (count + most - 1) / most;
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(timed.seconds[i], i); });
    TimedKernel part{.facts = timed.facts, .schedules = {}, .seconds = {}};
    for (size_t i = 0; i < count; i += step) {
      part.schedules.push_back(timed.schedules[order[i]]);
      part.seconds.push_back(timed.seconds[order[i]]);
    }
    some.push_back(std::move(part));
  }
  return some;
}

}  // namespace

std::string processor_of(const Target& target) {
  std::string name = target.cpu.empty() ? target.name : target.cpu;
  for (size_t i = 0; i < std::min<size_t>(target.caches.size(), 2); ++i)
    name += fmt::format(", {}", format_bytes(target.caches[i].bytes));
  return name;
}

Target with_fitted_rates(Target target, std::span<const KernelSample> all, int64_t threads) {
  const std::vector<KernelSample> kernels = thinned(all);
  // A fit first of all makes coefficients of arithmetic take the place of a slower clock. So the
  // clock comes before it.
  const double level = level_of(kernels, target, threads);
  const double clock = std::clamp(std::exp(-level), 1 / kMostClock, kMostClock);
  for (double& peak : target.peaks)
    if (peak > 0) scale_rate(peak, clock);
  const Prices prices = fitted_prices(kernels, target, threads).prices;
  const auto of = [](double coefficient) { return 1 / std::max(coefficient, kLeastFactor); };
  const double caches[] = {clock * of(prices.load), of(prices.second_cache),
                           of(prices.third_cache)};
  for (size_t i = 0; i < target.caches.size(); ++i)
    scale_rate(target.caches[i].bytes_per_second, caches[std::min<size_t>(i, 2)]);
  scale_rate(target.memory_one_core, of(prices.memory));
  target.memory_all_cores = std::max(target.memory_all_cores, target.memory_one_core);
  target.measured = true;
  return target;
}

MeasuredSet measured_set(const KernelData& data) {
  return {.target = data.target,
          .processor =
              data.probe ? *data.probe : with_fitted_rates(data.target, data.kernels, data.threads),
          .threads = data.threads,
          .kernels = data.kernels};
}

FittedPrices fitted_prices(std::span<const KernelSample> kernels, const Target& target,
                           int64_t threads) {
  return fit_prices(some_of(kernels, kMostFitted), target, threads);
}

}  // namespace hone
