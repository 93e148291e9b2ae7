#include "timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/timeline/random_jobs.h"
#include "tests/timeline/slow_timeline.h"

namespace hone::HONE_FILE {
namespace {

using tested::change;
using tested::computing;
using tested::Draw;
using tested::message;
using tested::random_jobs;
using tested::refuses;
using tested::rounds_of_jobs;
using tested::says;
using tested::slow_timeline;
using tested::SlowTimeline;
using testing::ElementsAre;

std::vector<double> ends(const Jobs& jobs) {
  const Timeline timeline = Timeline::open(jobs).value();
  std::vector<double> ends;
  for (uint32_t job = 0; job < timeline.size(); ++job)
    ends.push_back(seconds_of(timeline.end(job)));
  return ends;
}

// ---- By hand -----------------------------------------------------------------------------------

TEST(Timeline, AQueueTakesOneJobAtATime) {
  EXPECT_THAT(ends({2, {}, {computing(0, 1), computing(0, 2), computing(1, 4)}}),
              ElementsAre(1, 3, 4));
  EXPECT_THAT(ends({1, {}, {}}), ElementsAre());
}

TEST(Timeline, AJobWaitsForOthers) {
  EXPECT_THAT(ends({2, {}, {computing(0, 1, {2}), computing(1, 2), computing(1, 1, {1})}}),
              ElementsAre(4, 2, 3));
}

TEST(Timeline, TheHigherPriorityIsFirstButInterruptsNothing) {
  // While job 0 runs, 1 and 2 become ready; 3 is first of all from the beginning.
  EXPECT_THAT(ends({1,
                    {},
                    {computing(0, 2, {3}, 1), computing(0, 1, {3}), computing(0, 1, {3}, 5),
                     computing(0, 1, {}, -7)}}),
              ElementsAre(4, 5, 2, 1));
}

TEST(Timeline, MessagesShareLinks) {
  // Two flows at 5 B/s until the first has moved, then one at 10 B/s.
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0}}), message(30, {{0}})}}), ElementsAre(2, 4));
  // A link that is not shared, and flows that stand for two.
  EXPECT_THAT(ends({0, {{10, 0, false}}, {message(10, {{0}}), message(30, {{0}})}}),
              ElementsAre(1, 3));
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0, 2}})}}), ElementsAre(2));
}

TEST(Timeline, SecondsOfAMessagePassBehindItsBytes) {
  // The link is free again while the first message is still on its way.
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0}}, {}, 5), message(10, {{0}}, {}, 0)}}),
              ElementsAre(7, 2));
  EXPECT_THAT(ends({0, {}, {message(0, {}, {}, 3), message(9, {}, {0}, 1)}}), ElementsAre(3, 4));
}

TEST(Timeline, ComputingAndMovingOverlap) {
  const Jobs jobs = {
      1,
      {{1}},
      {computing(0, 1), message(2, {{0}}, {0}), computing(0, 2, {0}), computing(0, 1, {1, 2})}};
  EXPECT_THAT(ends(jobs), ElementsAre(1, 3, 3, 4));
  const Timeline timeline = Timeline::open(jobs).value();
  EXPECT_EQ(timeline.start(3), ticks_of(3));
  EXPECT_EQ(timeline.end(), ticks_of(4));
}

TEST(Timeline, RefusesJobsThatMakeNoSense) {
  const auto refused = [](std::vector<Job> jobs) {
    return check(Jobs{1, {{10}}, std::move(jobs)});
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused({computing(0, 1)}).ok());
  EXPECT_THAT(refused({computing(1, 1)}), says("job 0 ... queue 1 of 1"));
  EXPECT_THAT(refused({computing(0, -1)}), says("job 0 ... -1 s"));
  EXPECT_THAT(refused({computing(0, nan)}), says("job 0 ... nan"));
  EXPECT_THAT(refused({message(nan, {{0}})}), says("job 0 ... nan bytes"));
  EXPECT_THAT(refused({message(1, {{1}})}), says("job 0 ... link 1 of 1"));
  EXPECT_THAT(refused({message(1, {{0, 0}})}), says("job 0 ... 0 times"));
  EXPECT_THAT(refused({computing(0, 1, {1})}), says("job 0 ... job 1 of 1"));
  EXPECT_THAT(refused({computing(0, 1, {0})}), says("job 0 waits for job 0"));
  EXPECT_THAT(refused({computing(0, 1), computing(0, 1, {0, 2}), computing(0, 1, {1})}),
              says("waits for job ... which waits for job"));
  EXPECT_THAT(refused({message(1e7, {{0}})}), refuses(ErrorCode::limit, "1000000 s"));
  EXPECT_THAT(refused({computing(0, 1e6)}),
              refuses(ErrorCode::limit, "job 0 takes 1000000 s ... faster devices"));
  Job both = computing(0, 1);
  both.bytes = 1;
  EXPECT_THAT(refused({both}), says("job 0 ... queue ... bytes"));
  EXPECT_THAT(check(Jobs{0, {{0}}, {}}), says("link 0 is 0 B/s"));
}

// A step of a large model on a slow processor.
TEST(Timeline, TakesStepsOfDays) {
  const double day = 24 * 3600;
  Timeline timeline =
      Timeline::open({2, {}, {computing(0, 3 * day), computing(1, day), computing(1, 4 * day)}})
          .value();
  EXPECT_EQ(timeline.end(), ticks_of(5 * day));
  ASSERT_TRUE(timeline.set_seconds(2, 5.5 * day).ok());
  timeline.update();
  EXPECT_EQ(timeline.end(), ticks_of(6.5 * day));
}

TEST(Timeline, RefusesChangesThatMakeNoSense) {
  Timeline timeline =
      Timeline::open({1, {{10}}, {computing(0, 1), message(10, {{0}}, {0})}}).value();
  EXPECT_THAT(timeline.set_seconds(2, 1), says("job 2 ... 2"));
  EXPECT_THAT(timeline.set_seconds(0, -1), says("seconds of job 0 are -1"));
  EXPECT_THAT(timeline.set_seconds(0, kMaxTimeline - 0.5),
              refuses(ErrorCode::limit, "s ... 864000"));
  EXPECT_THAT(timeline.set_seconds(0, 1e6),
              refuses(ErrorCode::limit, "job 0 takes 1000000 s ... faster devices"));
  EXPECT_THAT(timeline.set_bytes(0, 1), says("job 0 ... queue"));
  EXPECT_THAT(timeline.set_bytes(1, 1e7), refuses(ErrorCode::limit, "s ... 864000"));
  EXPECT_THAT(timeline.set_queue(0, 1), says("job 0 ... queue 1 of 1"));
  EXPECT_THAT(timeline.set_queue(1, 0), says("job 1"));
  timeline.update();
  EXPECT_EQ(timeline.end(), ticks_of(2));
}

// ---- Against the judge -------------------------------------------------------------------------

void expect_times(const Timeline& timeline, const Jobs& jobs) {
  const SlowTimeline slow = slow_timeline(jobs);
  for (uint32_t job = 0; job < timeline.size(); ++job) {
    ASSERT_NEAR(seconds_of(timeline.start(job)), seconds_of(slow.start[job]), 1e-9)
        << "job " << job;
    ASSERT_NEAR(seconds_of(timeline.end(job)), seconds_of(slow.end[job]), 1e-9) << "job " << job;
  }
}

void expect_same(const Timeline& changed, const Timeline& anew) {
  ASSERT_EQ(changed.end(), anew.end());
  for (uint32_t job = 0; job < anew.size(); ++job) {
    ASSERT_EQ(changed.start(job), anew.start(job)) << "job " << job;
    ASSERT_EQ(changed.end(job), anew.end(job)) << "job " << job;
  }
}

void compare(uint64_t seed, int64_t changes) {
  Rng rng(seed);
  const Draw draw = {rng, rng.chance(0.5)};
  Jobs jobs = random_jobs(rng, draw);
  Timeline timeline = Timeline::open(jobs).value();
  expect_times(timeline, jobs);
  for (int64_t i = 0; i < changes && !jobs.jobs.empty() && !testing::Test::HasFailure(); ++i) {
    for (int64_t together = rng.chance(0.3) ? 3 : 1; together > 0; --together)
      ASSERT_TRUE(change(rng, draw, jobs, timeline).ok());
    timeline.update();
    expect_same(timeline, Timeline::open(jobs).value());
  }
  expect_times(timeline, jobs);
}

TEST(Timeline, HasTheTimesOfTheSlowSimulatorAfterChangesToo) {
  for (uint64_t seed = 0; seed < 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    compare(seed, 6);
  }
}

// ---- Changes -----------------------------------------------------------------------------------

TEST(Timeline, AChangeSimulatesOnlyWhatItTouches) {
  Jobs jobs = rounds_of_jobs(7, 500);
  Timeline timeline = Timeline::open(jobs).value();
  const int64_t all = timeline.events();
  EXPECT_EQ(all, 500 * (7 + 2));
  // The job of an odd queue has time: nothing else changes. A job of an even queue moves the rest.
  for (uint32_t job : {8U * 250 + 1, 8U * 250, 8U * 10 + 2, 8U * 499}) {
    const int64_t before = timeline.events();
    jobs.jobs[job].seconds *= 1.25;
    ASSERT_TRUE(timeline.set_seconds(job, jobs.jobs[job].seconds).ok());
    timeline.update();
    EXPECT_LT(timeline.events() - before, 200);
    expect_same(timeline, Timeline::open(jobs).value());
  }
  const int64_t before = timeline.events();
  timeline.update();
  EXPECT_EQ(timeline.events(), before);
}

TEST(Timeline, ManyChangesOfALongTimelineAreThoseOfANewOne) {
  Rng rng(9);
  const Draw draw = {rng, true};
  Jobs jobs = rounds_of_jobs(3, 200);
  Timeline timeline = Timeline::open(jobs).value();
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    for (int64_t together = rng.between(1, 2); together > 0; --together)
      ASSERT_TRUE(change(rng, draw, jobs, timeline).ok());
    timeline.update();
    expect_same(timeline, Timeline::open(jobs).value());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
