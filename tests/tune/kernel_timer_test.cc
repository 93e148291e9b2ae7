#include "tune/kernel_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "tests/tune/softmax_testing.h"
#include "tune/timed_schedules.h"

namespace hone::HONE_FILE {
namespace {

class KernelTimerTest : public testing::Test {
 protected:
  KernelTimer timer(MeasuredKernels& known, double most_drift = INFINITY) const {
    return {facts_, start_, target_, known, {.most_drift = most_drift}};
  }
  KernelCandidate candidate(const Schedule& schedule) const {
    return candidate_of(body_, schedule, target_).value();
  }
  // The start, and schedules of other code.
  std::vector<Schedule> different(size_t count) const {
    const ScheduleSpace space(facts_->body, *facts_, target_);
    Rng rng(1);
    std::vector<Schedule> schedules = {start_};
    std::set<uint64_t> codes = {candidate(start_).code};
    while (schedules.size() < count) {
      const Schedule next = space.sample(rng);
      const Result<KernelCandidate> built = candidate_of(body_, next, target_);
      if (built.ok() && codes.insert(built->code).second) schedules.push_back(next);
    }
    return schedules;
  }
  // The log has this time of the schedule.
  void keep(const Schedule& schedule, double seconds) const {
    const KernelCandidate one = candidate(schedule);
    const Measured measured = {.outcome = Outcome::measured,
                               .seconds = std::vector<double>(kPlaces, seconds)};
    MeasuredKernels(log_.get(), target_, "test").keep(conditions_, {&one, 1}, {&measured, 1});
  }

  const Target target_ = host_target().value();
  const std::shared_ptr<const KernelFacts> facts_ = tested::softmax_facts();
  const std::shared_ptr<const KernelBody> body_ = std::make_shared<const KernelBody>(facts_->body);
  const Schedule start_ = tested::simplest_schedule(*facts_, target_);
  const std::string conditions_ = MeterConditions().text();
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
};

TEST_F(KernelTimerTest, AsksUntilSoManyWereNew) {
  std::vector<Schedule> asked = different(3);
  asked.insert(asked.begin() + 1, start_);
  MeasuredKernels known(nullptr, target_, "test");
  KernelTimer timer = this->timer(known);
  const auto answers = timer.ask(asked, 2).value();
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_TRUE(answers[0].is_new);
  EXPECT_FALSE(answers[1].is_new) << "the same code";
  EXPECT_EQ(answers[1].seconds, answers[0].seconds);
  EXPECT_TRUE(std::isfinite(answers[0].seconds));
  EXPECT_TRUE(answers[2].is_new);
  EXPECT_FALSE(answers[3].is_new) << "not looked at";
  EXPECT_TRUE(std::isinf(answers[3].seconds));
  EXPECT_TRUE(timer.ask(asked, 2).value()[3].is_new);
}

TEST_F(KernelTimerTest, WhatTheLogKnowsIsNotMeasured) {
  const std::vector<Schedule> asked = different(3);
  for (const Schedule& schedule : asked) keep(schedule, 2e-6);
  MeasuredKernels known(log_.get(), target_, "test");
  KernelTimer timer = this->timer(known);
  EXPECT_THAT(timer.seconds(asked).value(), testing::Each(2e-6));
  EXPECT_EQ(timer.compiles(), 0);
  EXPECT_EQ(known.reused(), 3);
}

// The last time counts.
TEST_F(KernelTimerTest, MeasuresAgainWhatItKnows) {
  const std::vector<Schedule> asked = different(2);
  for (const Schedule& schedule : asked) keep(schedule, 1);
  MeasuredKernels known(log_.get(), target_, "test");
  const std::vector<double> again = timer(known).again(asked, 3).value();
  ASSERT_EQ(again.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LT(again[i], 1);
    EXPECT_EQ(known.time(candidate(asked[i]).code, conditions_).value()->seconds, again[i]);
  }
}

// Only who compares races knows how far they are apart: that is noise of their times.
TEST_F(KernelTimerTest, ARaceThatCountsByItselfHasNoDrift) {
  const std::vector<Schedule> asked = different(2);
  for (const double most_drift : {0.0, double{INFINITY}}) {
    MeasuredKernels known(log_.get(), target_, "test");
    KernelTimer timer = this->timer(known, most_drift);
    const std::vector<double> seconds = timer.seconds(asked).value();
    const bool compares = std::isfinite(most_drift);
    EXPECT_EQ(timer.refused(), compares ? 1 : 0);
    EXPECT_EQ(std::isinf(seconds[0]), compares);
  }
  for (const Record& record : log_->find({.subject = facts_->hash}).value())
    EXPECT_EQ(record.noise, 0);
}

TEST(KernelTimerNoise, ATimeIsDoubtfulByItsNoiseOrByThatOfTheStart) {
  const auto is_doubtful = [](double noise, double start) {
    return KernelTimer::is_doubtful({.seconds = 5e-6, .noise = noise, .start = start}, 0.3, 1e-6,
                                    1.25);
  };
  EXPECT_FALSE(is_doubtful(0.3, 1.2e-6));
  EXPECT_TRUE(is_doubtful(0.31, 1.2e-6));
  EXPECT_TRUE(is_doubtful(0.3, 1.25e-6));
  EXPECT_FALSE(is_doubtful(0, 0)) << "a log does not say what the start took";
}

// ---- Searches -----------------------------------------------------------------------------------

// The log has all times, so nothing is measured and all numbers are known.
TEST_F(KernelTimerTest, ASearchHearsOfThePromisingSchedulesAlone) {
  const std::vector<Schedule> all = different(8);
  for (size_t i = 0; i < all.size(); ++i) keep(all[i], 1e-6 * static_cast<double>(all.size() - i));
  MeasuredKernels known(log_.get(), target_, "test");
  KernelTimer timer = this->timer(known);
  ScheduleSearch space(facts_, target_, start_);
  const AnalyticCost cost(target_);
  Promising promising(facts_, target_, cost, 1, 0.5);
  std::vector<int64_t> steps;
  TimedSchedules times(space, timer, promising, [&](int64_t count) { steps.push_back(count); });
  std::vector<Point> points;
  for (const Schedule& schedule : all) points.push_back(space.point(schedule));
  std::vector<double> seconds(all.size()), prices(all.size());
  ASSERT_TRUE(times.price(points, INFINITY, seconds).ok());
  EXPECT_EQ(timer.compiles(), 0);
  EXPECT_EQ(times.measured(), 4);
  EXPECT_THAT(steps, testing::ElementsAre(4));

  cost.kernel(facts_, 1)->price(all, INFINITY, prices);
  std::vector<std::pair<double, size_t>> sorted;
  for (size_t i = 0; i < all.size(); ++i) sorted.emplace_back(prices[i], i);
  std::ranges::sort(sorted);
  std::vector<Point> fastest;  // of the cheaper half; later ones are faster
  for (size_t i = all.size(); i-- > 0;) {
    EXPECT_EQ(std::isfinite(seconds[i]), std::pair(prices[i], i) <= sorted[3]) << i;
    if (std::isfinite(seconds[i])) fastest.push_back(points[i]);
  }
  EXPECT_EQ(times.fastest(), fastest);
  EXPECT_GE(times.needed(), 1);
  EXPECT_LE(times.needed(), 4);

  TimedSchedules every(space, timer);
  ASSERT_TRUE(every.price(points, INFINITY, seconds).ok());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_NEAR(seconds[i], 1e-6 * static_cast<double>(all.size() - i), 1e-12);
  EXPECT_EQ(every.measured(), 4) << "the other half was new";
}

}  // namespace
}  // namespace hone::HONE_FILE
