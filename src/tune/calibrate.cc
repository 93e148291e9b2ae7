#include "tune/calibrate.h"

#include <algorithm>
#include <chrono>

#include "cost/analytic.h"
#include "kernel/schedule_space.h"
#include "learn/ranking.h"
#include "tune/calibration_set.h"
#include "tune/kernel_timer.h"

namespace hone {
namespace {

constexpr size_t kAtOnce = 8;      // schedules that are raced together
constexpr size_t kLeastTimed = 3;  // schedules of a kernel, to say something about their order
constexpr size_t kLeastFitted = 2, kLeastHeldOut = 1;  // kernels
constexpr double kForKernels = 0.6;                    // of the time; the rest is for whole models

using Clock = std::chrono::steady_clock;

// The planned schedule, and random ones: half anywhere, half a few steps from the planned one.
std::vector<Schedule> draws_of(const CalibrationKernel& kernel, const Target& target, Rng rng) {
  const ScheduleSpace space(kernel.facts->body, *kernel.facts, target);
  std::vector<Schedule> all = {kernel.planned};
  Schedule near = kernel.planned;
  for (int64_t i = 1; i < CalibrateOptions::kMostSchedules; ++i) {
    if (i % 2 == 0) {
      all.push_back(space.sample(rng));
      continue;
    }
    if (i % 8 == 1) near = kernel.planned;
    if (const std::optional<Schedule> next = space.step(near, rng)) near = *next;
    all.push_back(near);
  }
  return all;
}

// Should time run out, what was measured is of all kinds, and a third of it is held out.
std::vector<CalibrationKernel> mixed(std::vector<CalibrationKernel> kernels) {
  Rng(0).shuffle(kernels);
  std::vector<CalibrationKernel> fitted, held_out, all;
  for (CalibrationKernel& kernel : kernels)
    (kernel.is_held_out ? held_out : fitted).push_back(std::move(kernel));
  while (!fitted.empty() || !held_out.empty())
    for (std::vector<CalibrationKernel>* part : {&fitted, &fitted, &held_out}) {
      if (part->empty()) continue;
      all.push_back(std::move(part->back()));
      part->pop_back();
    }
  return all;
}

PriceCheck check_of(std::span<const TimedKernel> kernels, const Target& target, int64_t threads,
                    const Prices& prices) {
  PriceCheck check{.kernels = kernels.size()};
  for (const TimedKernel& kernel : kernels) {
    const std::vector<double> priced = price_all(kernel, target, threads, prices);
    const auto share = 1 / static_cast<double>(kernels.size());
    check.tau += share * kendall_tau(priced, kernel.seconds);
    check.error += share * mean_error(priced, kernel.seconds);
    check.schedules += priced.size();
  }
  return check;
}

class Calibrator {
 public:
  Calibrator(const Target& target, const CalibrateOptions& options)
      : target_(target), options_(options), known_(options.log, target, options.version) {}

  Result<Calibration> run() {
    const AnalyticCost cost(target_);
    const std::vector<CalibrationKernel> kernels =
        mixed(HONE_TRY(calibration_kernels(target_, cost, options_.threads)));
    Rng rng(options_.seed);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const double left = kForKernels * options_.seconds - elapsed();
      if (left <= 0 && is_enough()) {
        result_.left_out = kernels.size() - i;
        break;
      }
      const double share = left / static_cast<double>(kernels.size() - i);
      HONE_TRY(time(kernels[i], elapsed() + share, i + 1, kernels.size(), rng.fork()));
    }
    if (!is_enough())
      return over_limit(
                 "{} kernels could be measured for the fit and {} beside it, fewer than {} "
                 "and {}",
                 fitted_.size(), held_out_.size(), kLeastFitted, kLeastHeldOut)
          .with_hint("'hone log show' has the outcome of each schedule that was tried");
    fit();
    HONE_TRY(race());
    result_.reused = known_.reused();
    result_.unwritten = known_.unwritten();
    result_.seconds = elapsed();
    return result_;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  bool is_enough() const {
    return fitted_.size() >= kLeastFitted && held_out_.size() >= kLeastHeldOut;
  }

  // Batch by batch until that time; one batch in any case.
  Status time(const CalibrationKernel& kernel, double until, size_t number, size_t count, Rng rng) {
    MeterOptions meter;
    meter.conditions.threads = options_.threads;
    meter.seed = options_.seed;
    meter.cancel = options_.cancel;
    KernelTimer timer(kernel.facts, kernel.planned, target_, known_, meter);
    const std::vector<Schedule> draws = draws_of(kernel, target_, std::move(rng));
    for (size_t at = 0; at < draws.size() && (at == 0 || elapsed() < until); at += kAtOnce) {
      const auto batch = std::span(draws).subspan(at, std::min(kAtOnce, draws.size() - at));
      const Result<std::vector<double>> seconds = timer.seconds(batch);
      if (seconds.ok()) continue;
      if (seconds.error().code() == ErrorCode::interrupted) return seconds.error();
      break;  // of this kernel; the others tell enough
    }
    result_.compiles += timer.compiles();
    const size_t timed = timer.timed().seconds.size();
    if (options_.told)
      options_.told(
          fmt::format("kernel {} of {}, {}: {} schedules", number, count, kernel.kind, timed));
    if (timed >= kLeastTimed) (kernel.is_held_out ? held_out_ : fitted_).push_back(timer.timed());
    return {};
  }

  void fit() {
    const FittedPrices fit = fit_prices(fitted_, target_, options_.threads);
    result_.fitted = fit.prices;
    result_.loss_before = fit.loss_before;
    result_.loss_after = fit.loss_after;
    const auto check = [&](std::span<const TimedKernel> kernels, const Prices& prices) {
      return check_of(kernels, target_, options_.threads, prices);
    };
    result_.fitted_before = check(fitted_, Prices());
    result_.fitted_after = check(fitted_, fit.prices);
    result_.held_before = check(held_out_, Prices());
    result_.held_after = check(held_out_, fit.prices);
  }

  // Whole models have the last word: the fit sees kernels alone.
  Status race() {
    if (result_.fitted == Prices()) return {};
    const auto planning = [&](const Prices& prices) {
      return options_.planning ? options_.planning(prices)
                               : std::make_shared<AnalyticCost>(target_, prices);
    };
    result_.race = HONE_TRY(race_prices(
        options_.held_back, target_, planning(Prices()), planning(result_.fitted),
        {.seconds = std::max(options_.seconds - elapsed(), (1 - kForKernels) * options_.seconds),
         .threads = options_.threads,
         .cancel = options_.cancel,
         .told = options_.told,
         .timer = options_.timer}));
    if (result_.race->why_not().empty()) result_.prices = result_.fitted;
    return {};
  }

  const Target& target_;
  const CalibrateOptions& options_;
  const Clock::time_point began_ = Clock::now();
  MeasuredKernels known_;
  std::vector<TimedKernel> fitted_, held_out_;
  Calibration result_;
};

}  // namespace

Result<Calibration> calibrate(const Target& target, const CalibrateOptions& options) {
  if (!(options.seconds > 0))
    return usage_error("a budget of {} s is too short to measure in", options.seconds);
  if (options.threads < 1 || options.threads > target.cores)
    return usage_error("{} threads are outside of 1..{}, the target's cores", options.threads,
                       target.cores);
  return Calibrator(target, options).run();
}

}  // namespace hone
