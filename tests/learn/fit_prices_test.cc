#include "learn/fit_prices.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/analytic.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "tests/target/target_testing.h"
#include "tune/calibration_set.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

const std::vector<CalibrationKernel>& kernels() {
  static const std::vector<CalibrationKernel> all =
      calibration_kernels(target(), AnalyticCost(target()), 1).value();
  return all;
}

// As if they had been measured on a machine of just these prices.
std::vector<TimedKernel> timed(const Prices& prices, double noise = 0, int count = 7) {
  std::vector<TimedKernel> all;
  Rng rng(3);
  for (const CalibrationKernel& kernel : kernels()) {
    TimedKernel timed{.facts = kernel.facts, .schedules = {kernel.planned}, .seconds = {}};
    const ScheduleSpace space(kernel.facts->body, *kernel.facts, target());
    for (int i = 0; i < count; ++i) timed.schedules.push_back(space.sample(rng));
    timed.seconds = price_all(timed, target(), 1, prices);
    for (double& seconds : timed.seconds) seconds *= std::exp(noise * rng.normal());
    all.push_back(std::move(timed));
  }
  return all;
}

TEST(FitPrices, FindsTheCoefficientsThatMadeTheTimes) {
  Prices made;
  made.trip = 5;
  made.sum_latency = 12;
  made.start = 15;
  made.second_cache = 2;
  made.apart = 3;
  made.not_hidden = 0.4;
  const FittedPrices fit = fit_prices(timed(made, 0, 12), target(), 1);
  EXPECT_LT(fit.loss_after, 0.05 * fit.loss_before);
  EXPECT_NEAR(fit.prices.trip, made.trip, 0.2 * made.trip);
  EXPECT_NEAR(fit.prices.start, made.start, 0.15 * made.start);
  EXPECT_NEAR(fit.prices.second_cache, made.second_cache, 0.15 * made.second_cache);
  EXPECT_NEAR(fit.prices.not_hidden, made.not_hidden, 0.1);
}

TEST(FitPrices, KeepsTheDefaultsIfTheyAreRight) {
  const FittedPrices fit = fit_prices(timed(Prices()), target(), 1);
  EXPECT_TRUE(fit.is_default()) << print(fit.prices, "");
  EXPECT_EQ(fit.loss_after, fit.loss_before);
}

TEST(FitPrices, IsNeverWorseAndTheSameAgain) {
  const std::vector<TimedKernel> noisy = timed(Prices(), 0.2);
  const FittedPrices fit = fit_prices(noisy, target(), 1);
  EXPECT_LE(fit.loss_after, fit.loss_before);
  EXPECT_TRUE(fit_prices(noisy, target(), 1).prices == fit.prices);
  // The fit is a text that commands take.
  EXPECT_TRUE(parse_prices(print(fit.prices, "t"), "t").value() == fit.prices);
}

TEST(FitPrices, KeepsTheDefaultsWithoutTimes) {
  EXPECT_TRUE(fit_prices({}, target(), 1).is_default());
}

// Each row of the set is a kernel of the kind that it says, and each kind has one held out.
TEST(CalibrationSet, HasKernelsOfEachKind) {
  ASSERT_EQ(kernels().size(), calibration_rows().size());
  std::map<std::string_view, int> held_out;
  for (const CalibrationKernel& kernel : kernels()) {
    EXPECT_EQ(kernel_kind(*kernel.facts, kernel.planned.algorithm()), kernel.kind);
    held_out[kernel.kind] += kernel.is_held_out;
  }
  for (const auto& [kind, count] : held_out) EXPECT_GE(count, 1) << kind;
}

}  // namespace
}  // namespace hone::HONE_FILE
