#include "tune/price_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "report/calibration_text.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/target/target_testing.h"
#include "tests/tune/trusted_price_testing.h"
#include "tune/calibrate.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

// Made-up times of a model whose new plan takes `ratio` times as long, with noise of 1 %.
PlanDuel fought(double ratio, int64_t rounds = 12, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<std::vector<double>> a, b;
  for (int64_t i = 0; i < rounds; ++i) {
    a.push_back({1e-3 * std::exp(0.01 * rng.normal())});
    b.push_back({ratio * 1e-3 * std::exp(0.01 * rng.normal())});
  }
  return {.outcome = Outcome::measured, .times = judged(a, b)};
}

// Models that take this many times as long, by one duel each.
PriceRace race_of_ratios(std::initializer_list<double> ratios, size_t left_out = 0) {
  std::vector<RacedModel> models;
  for (double ratio : ratios)
    models.push_back({fmt::format("model {}", models.size()),
                      fought(ratio, 8 + static_cast<int64_t>(models.size()), models.size())});
  return race_of(std::move(models), left_out);
}

// ---- The decision -------------------------------------------------------------------------------

TEST(PriceRace, PricesByWhichModelsAreFasterAreKept) {
  EXPECT_EQ(race_of_ratios({0.8, 0.9, 0.85}).why_not(), "");
  EXPECT_EQ(race_of_ratios({0.9, 1, 1, 1}).why_not(), "");
  EXPECT_NEAR(race_of_ratios({0.8, 0.9, 0.85}).all->ratio, std::cbrt(0.8 * 0.9 * 0.85), 0.01);
}

TEST(PriceRace, PricesByWhichModelsAreSlowerAreNot) {
  EXPECT_THAT(race_of_ratios({1.48, 1.31, 1.3}).why_not(), HasSubstr("model 0 is surely slower"));
  EXPECT_THAT(race_of_ratios({0.5, 1.1, 0.9}).why_not(), HasSubstr("model 1 is surely slower"));
}

TEST(PriceRace, PricesThatChangeNothingAreNotKept) {
  int kept = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<RacedModel> models;
    for (uint64_t i = 0; i < 4; ++i) models.push_back({"model", fought(1, 10, 4 * seed + i)});
    kept += race_of(std::move(models), 0).why_not().empty() ? 1 : 0;
  }
  EXPECT_LE(kept, 6);  // 1 %, and three deviations
  EXPECT_THAT(race_of({{"a"}, {"b"}, {"c"}}, 0).why_not(), HasSubstr("the same plans"));
}

TEST(PriceRace, PlansThatFailAreNotKept) {
  std::vector<RacedModel> models = {{"a", fought(0.5)}, {"b", fought(0.5)}};
  models.push_back({"c", PlanDuel{.outcome = Outcome::wrong}});
  EXPECT_THAT(race_of(models, 0).why_not(), says("plan of c ... wrong"));
}

TEST(PriceRace, FewModelsSayNothingOfOthers) {
  EXPECT_THAT(race_of_ratios({0.5, 0.5}, 3).why_not(), HasSubstr("2 of 5 whole models"));
  EXPECT_EQ(race_of_ratios({0.5, 0.5, 0.5}, 2).why_not(), "");
}

// A calibration keeps what it has fitted and adapted, or neither.
TEST(PriceRace, DecidesAboutACalibration) {
  Calibration calibration;
  calibration.fitted.trip = 5;
  calibration.adapted = random_model(parse_target(kSampleTarget, "t").value(), 1);
  const KernelModel adapted = *calibration.adapted;
  Calibration refused = calibration;
  calibration.decide_by(race_of_ratios({0.8, 0.9, 0.85}));
  EXPECT_EQ(calibration.prices, calibration.fitted);
  EXPECT_TRUE(calibration.adapted == adapted);
  refused.decide_by(race_of_ratios({0.5, 1.1, 0.9}));
  EXPECT_TRUE(refused.is_default());
  EXPECT_FALSE(refused.adapted);
  EXPECT_THAT(calibration_text(refused), HasSubstr("not kept: model 1 is surely slower"));
}

// ---- The race -----------------------------------------------------------------------------------

const Target& target() {
  static const Target target = host_target().value();
  return target;
}

std::vector<HeldBackModel> tiny_models() {
  std::vector<HeldBackModel> models;
  for (const char* name : {"mlp", "squeezenet", "gpt2"})
    models.push_back({name, [name] { return build_zoo_model(name, {.size = ZooSize::tiny}); }});
  return models;
}

PlanTimer timer_of(double ratio, int& duels) {
  return [ratio, &duels](const Image&, const Image&, std::span<const Tensor>,
                         const DuelOptions&) -> Result<PlanDuel> {
    return fought(ratio, 10, static_cast<uint64_t>(++duels));
  };
}

TEST(PriceRace, RacesThePlansThatPricesChoose) {
  const auto usual = std::make_shared<AnalyticCost>(target());
  const auto other =
      std::make_shared<TrustedPrice>(target(), TrustedPrice::Says{.is_misled = true});
  int duels = 0;
  const PriceRace faster =
      race_prices(tiny_models(), target(), usual, other, {.timer = timer_of(0.8, duels)}).value();
  EXPECT_EQ(duels, 3);
  EXPECT_EQ(faster.why_not(), "");
  // Equal plans need no times.
  const PriceRace same =
      race_prices(tiny_models(), target(), usual, usual, {.timer = timer_of(0.8, duels)}).value();
  EXPECT_EQ(duels, 3);
  EXPECT_EQ(same.models.size(), 3U);
  EXPECT_THAT(same.why_not(), HasSubstr("the same plans"));
}

TEST(PriceRace, WithoutTimeOneModelIsRaced) {
  const auto usual = std::make_shared<AnalyticCost>(target());
  const auto other =
      std::make_shared<TrustedPrice>(target(), TrustedPrice::Says{.is_misled = true});
  int duels = 0;
  const PriceRace race = race_prices(tiny_models(), target(), usual, other,
                                     {.seconds = 0, .timer = timer_of(0.8, duels)})
                             .value();
  EXPECT_EQ(race.models.size(), 1U);
  EXPECT_EQ(race.left_out, 2U);
  EXPECT_FALSE(race.why_not().empty());
}

// Each model takes 30 s by this clock: the fourth would end after the budget.
TEST(PriceRace, BeginsNoModelThatWouldEndTooLate) {
  const auto usual = std::make_shared<AnalyticCost>(target());
  const auto other =
      std::make_shared<TrustedPrice>(target(), TrustedPrice::Says{.is_misled = true});
  const std::vector<HeldBackModel> models(5, tiny_models()[0]);
  double now = 0;
  std::vector<double> most;
  const PlanTimer timer = [&](const Image&, const Image&, std::span<const Tensor>,
                              const DuelOptions& options) -> Result<PlanDuel> {
    now += 30;
    most.push_back(options.most_seconds);
    return fought(0.8, 10, most.size());
  };
  const PriceRace race = race_prices(models, target(), usual, other,
                                     {.seconds = 100, .timer = timer, .now = [&] { return now; }})
                             .value();
  EXPECT_EQ(race.models.size(), 3U);
  EXPECT_EQ(race.left_out, 2U);
  EXPECT_LE(now, 100);
  EXPECT_EQ(most, (std::vector<double>{INFINITY, 70, 40}));
}

// ---- Prices that may not make models slower -----------------------------------------------------

TEST(PriceRace, AModelThatIsSurelySlowerByMoreThanTwoPercentIsTooSlow) {
  EXPECT_FALSE(is_too_slow(fought(0.8)));
  EXPECT_FALSE(is_too_slow(fought(1)));
  EXPECT_FALSE(is_too_slow(fought(1.025)));  // its interval begins below
  EXPECT_TRUE(is_too_slow(fought(1.1)));
  EXPECT_TRUE(is_too_slow({.outcome = Outcome::wrong}));
  EXPECT_FALSE(is_too_slow({.outcome = Outcome::timed_out, .lacks_time = true}));
}

TEST(TimeBudget, HasTimeForAStepIfTheLongestFits) {
  double now = 5;
  TimeBudget budget(10, [&] { return now; });
  const auto takes = [&](double seconds) {
    return budget.step([&] {
      now += seconds;
      return seconds;
    });
  };
  EXPECT_TRUE(budget.has_time_for_step());
  EXPECT_EQ(takes(3), 3);
  EXPECT_EQ(budget.left(), 7);
  EXPECT_TRUE(budget.has_time_for_step());
  takes(1);
  takes(2.5);
  EXPECT_TRUE(budget.has_time_for_step());  // 3.5 are left, and 3 was the longest
  takes(1);
  EXPECT_FALSE(budget.has_time_for_step());
  EXPECT_EQ(budget.elapsed(), 7.5);
}

// The clock goes on by itself: what is not measured before its end is left out.
TEST(Calibrate, MeasuresNoBatchThatWouldEndTooLate) {
  HONE_ONE_RUN_OF(5);
  double now = 0;
  int duels = 0;
  CalibrateOptions options;
  options.seconds = 60;
  options.now = [&] { return now += 1; };
  options.held_back = {tiny_models()[1]};
  options.timer = timer_of(0.8, duels);
  const Calibration calibration = calibrate(target(), options).value();
  EXPECT_GT(calibration.left_out, 0U);
  EXPECT_LE(now, 60);
}

// The fit of kernels alone decides nothing.
TEST(Calibrate, AFitIsKeptOnlyIfWholeModelsAreFasterByIt) {
  HONE_ONE_RUN_OF(5);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<Log> log = Log::open((folder.path() / "log.db").native()).value();
  for (const double ratio : {1.3, 1.0, 0.8}) {
    int duels = 0;
    CalibrateOptions options;
    options.seconds = 2;
    options.log = log.get();
    options.held_back = {tiny_models()[1]};  // there is always time for one
    options.timer = timer_of(ratio, duels);
    const Calibration calibration = calibrate(target(), options).value();
    const bool has_fit = calibration.fitted != Prices();
    EXPECT_EQ(calibration.race.has_value(), has_fit);
    if (!calibration.race) continue;
    EXPECT_EQ(calibration.is_default(), !calibration.race->why_not().empty());
    if (duels == 0) continue;  // it changes no plan of these
    if (ratio < 1) EXPECT_EQ(calibration.prices, calibration.fitted);
    if (ratio >= 1) EXPECT_TRUE(calibration.is_default()) << ratio;
  }
}

// New prices race those that count so far, of an earlier call or with a model of whole plans: they
// may be new though they are the default ones.
TEST(Calibrate, RacesThePricesThatCountedBefore) {
  HONE_ONE_RUN_OF(5);
  for (const double ratio : {1.3, 0.8}) {
    int duels = 0;
    CalibrateOptions options;
    options.seconds = 2;
    options.held_back = {tiny_models()[1]};
    options.timer = timer_of(ratio, duels);
    options.used = std::make_shared<TrustedPrice>(target(), TrustedPrice::Says{.is_misled = true});
    const Calibration calibration = calibrate(target(), options).value();
    EXPECT_EQ(duels, 1);  // plans by these are surely others
    EXPECT_EQ(calibration.is_better(), ratio < 1);
    EXPECT_EQ(calibration.prices, ratio < 1 ? calibration.fitted : Prices());
  }
}

TEST(PriceRace, HeldBackModelsCanBeBuilt) {
  EXPECT_GE(held_back_models().size(), 3U);
  for (const HeldBackModel& model : held_back_models()) {
    const Result<Graph> graph = model.load();
    ASSERT_TRUE(graph.ok()) << model.name;
    EXPECT_TRUE(graph->symbols().empty()) << model.name;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
