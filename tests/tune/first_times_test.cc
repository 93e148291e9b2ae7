#include "tune/first_times.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "kernel/schedule_text.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

// A race that makes times up: `seconds` by candidate, 1 for those behind them.
class FakeRace {
 public:
  std::vector<double> seconds = {};
  double noise = 0.01;
  int calls = 0;
  std::vector<Schedule> raced = {};

  FirstRace race() {
    return [this](const KernelUse&, std::span<const Schedule> schedules,
                  const MeterOptions&) -> Result<std::vector<KernelTime>> {
      ++calls;
      raced.assign(schedules.begin(), schedules.end());
      std::vector<KernelTime> times;
      for (size_t i = 0; i < schedules.size(); ++i)
        times.push_back({i < seconds.size() ? seconds[i] : 1, noise});
      return times;
    };
  }
};

class FirstTimesTest : public testing::Test {
 protected:
  Plan revised(FirstTimesOptions options) const {
    options.least_seconds = 0;
    return with_first_times(graph_, plan_, target_, cost_, options).value();
  }
  KernelUse use() const { return kernel_uses(lower(graph_, plan_, target_).value(), cost_).at(0); }
  std::vector<Schedule> candidates() const { return first_candidates(use(), target_, cost_, 1); }

  const Target target_ = parse_target(kSampleTarget, "t").value();
  const AnalyticCost cost_{target_};
  const Graph graph_ =
      prepare(parse_graph(R"(graph @g(%x: f32[96, 64], %w: f32[64, 80]) -> f32[96, 80] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = max %h, 0
  return %y
})")
                  .value())
          .value();
  const Plan plan_ = [this] {
    Plan plan;
    plan.threads = 1;
    return complete(graph_, plan, target_, cost_).value();
  }();
};

TEST_F(FirstTimesTest, CandidatesBeginWithThePlannedScheduleAndDiffer) {
  const std::vector<Schedule> all = candidates();
  ASSERT_GE(all.size(), 2U);
  EXPECT_TRUE(all[0] == use().schedule);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(check_schedule(use().facts->body, all[i], target_).ok());
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i] == all[j]);
  }
}

TEST_F(FirstTimesTest, TheSurelyFastestTakesThePlace) {
  FakeRace fake{.seconds = {1, 0.5}};
  std::vector<std::string> lines;
  const Plan plan = revised(
      {.told = [&](std::string_view line) { lines.emplace_back(line); }, .race = fake.race()});
  EXPECT_EQ(fake.calls, 1);
  EXPECT_TRUE(fake.raced == candidates());
  EXPECT_TRUE(plan.schedule.at(use().hash) == candidates()[1]);
  EXPECT_TRUE(check_complete(plan, graph_, target_).ok());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("2.00x"), std::string::npos) << lines[0];
}

TEST_F(FirstTimesTest, InDoubtThePlannedScheduleStays) {
  FakeRace equal{.seconds = {1, 0.98}}, loud{.seconds = {1, 0.8}, .noise = 0.2};
  FakeRace lost{.seconds = {INFINITY, 0.8}};
  for (FakeRace* fake : {&equal, &loud, &lost}) {
    EXPECT_TRUE(revised({.race = fake->race()}) == plan_);
    EXPECT_EQ(fake->calls, 1);
  }
}

TEST_F(FirstTimesTest, NothingIsTimedWhereItMayNotOrDoesNotPay) {
  FakeRace fake{.seconds = {1, 0.5}};
  EXPECT_TRUE(revised({.measures = false, .race = fake.race()}) == plan_);
  EXPECT_TRUE(revised({.seconds = 0.1, .race = fake.race()}) == plan_);
  EXPECT_TRUE(revised({.least_share = 1.1, .race = fake.race()}) == plan_);
  FirstTimesOptions short_ones{.race = fake.race()};
  EXPECT_TRUE(with_first_times(graph_, plan_, target_, cost_, short_ones).value() == plan_);
  EXPECT_EQ(fake.calls, 0);
}

TEST_F(FirstTimesTest, AKernelThatCannotBeTimedHasItsPrice) {
  const auto fails_with = [&](ErrorCode code) {
    FirstTimesOptions options;
    options.least_seconds = 0;
    options.race = [code](const auto&, auto, const auto&) -> Result<std::vector<KernelTime>> {
      return Error(code, "no");
    };
    return with_first_times(graph_, plan_, target_, cost_, options);
  };
  EXPECT_TRUE(fails_with(ErrorCode::limit).value() == plan_);
  EXPECT_EQ(fails_with(ErrorCode::interrupted).error().code(), ErrorCode::interrupted);
}

// A second start finds the times of the first, and races nothing.
TEST_F(FirstTimesTest, TimesOfTheLogCountWithoutARace) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const auto log = Log::open((folder.path() / "log.db").native()).value();
  const auto keep = [&](const Schedule& schedule, double seconds) {
    const Record record = {.kind = "kernel",
                           .subject = use().hash,
                           .choice = print(schedule),
                           .code = 1,
                           .target = fingerprint(target_),
                           .conditions = MeterConditions{}.text(),
                           .seconds = std::vector<double>(9, seconds),
                           .version = "test"};
    ASSERT_TRUE(log->add({&record, 1}).ok());
  };
  FakeRace fake;
  FirstTimesOptions options{.log = [&] { return log.get(); }, .race = fake.race()};
  const std::vector<Schedule> all = candidates();
  for (size_t i = 0; i + 1 < all.size(); ++i) keep(all[i], 1e-3);
  options.measures = false;  // one of them is not known yet
  EXPECT_TRUE(revised(options) == plan_);
  keep(all.back(), 0.5e-3);
  for (bool measures : {true, false}) {
    options.measures = measures;
    EXPECT_TRUE(revised(options).schedule.at(use().hash) == all.back());
  }
  EXPECT_EQ(fake.calls, 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
