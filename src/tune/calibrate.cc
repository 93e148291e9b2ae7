#include "tune/calibrate.h"

#include <algorithm>

#include "cost/analytic.h"
#include "cost/learned_cost.h"
#include "learn/models/adapt_model.h"
#include "learn/ranking.h"
#include "tune/calibration_choice.h"
#include "tune/kernel_timer.h"

namespace hone {
namespace {

constexpr size_t kAtOnce = 8;      // schedules that are raced together
constexpr size_t kLeastTimed = 3;  // schedules of a kernel, to say something about their order
constexpr size_t kLeastFitted = 2, kLeastHeldOut = 1;  // kernels
constexpr double kForKernels = 0.6;                    // of the time; the rest is for whole models
constexpr double kForShares = 0.05;                    // to see what kinds of kernels models have

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

// Without a model of whole plans.
std::string version_of_prices(const Cost& cost) {
  return cost.learned() == nullptr ? cost.version()
                                   : std::string(cost.learned()->version_of_prices());
}

class Calibrator {
 public:
  Calibrator(const Target& target, const CalibrateOptions& options)
      : target_(target), options_(options), known_(options.log, target, options.version) {}

  Result<Calibration> run() {
    HONE_TRY(measure());
    if (!is_enough())
      return over_limit(
                 "{} kernels could be measured for the fit and {} beside it, fewer than {} "
                 "and {}",
                 fitted_.size(), held_out_.size(), kLeastFitted, kLeastHeldOut)
          .with_hint("'hone log show' has the outcome of each schedule that was tried");
    fit();
    adapt();
    HONE_TRY(race());
    result_.reused = known_.reused();
    result_.unwritten = known_.unwritten();
    result_.seconds = elapsed();
    return result_;
  }

 private:
  // The price of plans with these coefficients of the formula, and this model or none.
  std::shared_ptr<const Cost> planning(const Prices& prices,
                                       std::shared_ptr<const KernelModel> model) const {
    auto formula = std::make_shared<const AnalyticCost>(target_, prices);
    if (model == nullptr) return formula;
    return std::make_shared<const LearnedCost>(target_, std::move(model), std::move(formula));
  }

  Status measure() {
    const AnalyticCost cost(target_);
    const std::shared_ptr<const Cost> planned_by = planning(Prices(), options_.model);
    CalibrationChoice choice(
        HONE_TRY(calibration_kernels(target_, cost, options_.threads)), target_,
                             planned_by, options_.threads,
                             shares_of_kinds(options_.held_back, target_, planned_by,
                                             options_.threads, kForShares * options_.seconds));
    const size_t count = choice.left();
    Rng rng(options_.seed);
    TimeBudget batches(kForKernels * options_.seconds - elapsed(), options_.now);
    for (size_t i = 0; i < count; ++i) {
      if (!batches.has_time_for_step() && is_enough()) {
        result_.left_out = choice.left();
        break;
      }
      const double share = batches.left() / static_cast<double>(choice.left());
      const CalibrationKernel kernel = *choice.next();
      const std::vector<Schedule> draws =
          choice.schedules_of(kernel, CalibrateOptions::kMostSchedules, rng.fork());
      if (HONE_TRY(time(kernel, draws, elapsed() + share, batches, i + 1, count)))
        choice.keep(kernel.kind, (kernel.is_held_out ? held_out_ : fitted_).back());
    }
    return {};
  }

  double elapsed() const { return budget_.elapsed(); }

  bool is_enough() const {
    return fitted_.size() >= kLeastFitted && held_out_.size() >= kLeastHeldOut;
  }

  // Batch by batch until that time, as far as there is time for the longest batch so far; one batch
  // in any case. True if it was measured.
  Result<bool> time(const CalibrationKernel& kernel, std::span<const Schedule> draws, double until,
                    TimeBudget& batches, size_t number, size_t count) {
    MeterOptions meter;
    meter.conditions.threads = options_.threads;
    meter.seed = options_.seed;
    meter.cancel = options_.cancel;
    KernelTimer timer(kernel.facts, kernel.planned, target_, known_, meter);
    const auto goes_on = [&] { return elapsed() < until && batches.has_time_for_step(); };
    for (size_t at = 0; at < draws.size() && (at == 0 || goes_on()); at += kAtOnce) {
      const auto batch = draws.subspan(at, std::min(kAtOnce, draws.size() - at));
      const Result<std::vector<double>> seconds =
          batches.step([&] { return timer.seconds(batch); });
      if (seconds.ok()) continue;
      if (seconds.error().code() == ErrorCode::interrupted) return seconds.error();
      break;  // of this kernel; the others tell enough
    }
    result_.compiles += timer.compiles();
    const size_t timed = timer.timed().seconds.size();
    if (options_.told)
      options_.told(
          fmt::format("kernel {} of {}, {}: {} schedules", number, count, kernel.kind, timed));
    if (timed < kLeastTimed) return false;
    (kernel.is_held_out ? held_out_ : fitted_).push_back(timer.timed());
    return true;
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

  // Last layers move by all that was measured: what is held out judges coefficients alone, and
  // here kernels are left out in turn.
  void adapt() {
    if (options_.model == nullptr || options_.model->threads != options_.threads) return;
    std::vector<TimedKernel> all = fitted_;
    all.insert(all.end(), held_out_.begin(), held_out_.end());
    AdaptedModel adapted = adapt_model(*options_.model, all, target_);
    result_.adapted_before = adapted.loss_before;
    result_.adapted_after = adapted.loss_after;
    if (adapted.is_changed) result_.adapted = std::move(adapted.model);
  }

  // Whole models have the last word: the fit sees kernels alone.
  Status race() {
    const auto adapted =
        result_.adapted ? std::make_shared<const KernelModel>(*result_.adapted) : options_.model;
    const std::shared_ptr<const Cost> found = planning(result_.fitted, adapted);
    const std::shared_ptr<const Cost> used =
        options_.used ? options_.used : planning(Prices(), options_.model);
    if (version_of_prices(*used) == version_of_prices(*found)) return {};  // nothing new
    result_.decide_by( HONE_TRY(race_prices(options_.held_back, target_, used, found,
                                            {.seconds = budget_.left(),
                                             .threads = options_.threads,
                                             .cancel = options_.cancel,
                                             .told = options_.told,
                                             .timer = options_.timer,
                                             .now = options_.now})));
    return {};
  }

  const Target& target_;
  const CalibrateOptions& options_;
  const TimeBudget budget_ = TimeBudget(options_.seconds, options_.now);
  MeasuredKernels known_;
  std::vector<TimedKernel> fitted_, held_out_;
  Calibration result_;
};

}  // namespace

void Calibration::decide_by(PriceRace of_both) {
  race = std::move(of_both);
  if (is_better())
    prices = fitted;
  else
    adapted.reset();
}

Result<Calibration> calibrate(const Target& target, const CalibrateOptions& options) {
  if (!(options.seconds > 0))
    return usage_error("a budget of {} s is too short to measure in", options.seconds);
  if (options.threads < 1 || options.threads > target.cores)
    return usage_error("{} threads are outside of 1..{}, the target's cores", options.threads,
                       target.cores);
  return Calibrator(target, options).run();
}

}  // namespace hone
