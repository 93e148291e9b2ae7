#include "measure/slowdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/rng.h"
#include "measure/timing.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// A machine that is made up: what makes sessions of equal things differ.
struct Noise {
  const char* name;
  double run = 0.01;   // of each run, a deviation
  double session = 0;  // of a session as a whole: places in memory, heat, neighbours
  double drift = 0;    // within a session, from its first run to its last
  double slow = 0;     // the share of sessions at the slower of two speeds
  double bursts = 0;   // of single runs, by this factor
};
constexpr Noise kNoises[] = {
    {.name = "quiet"},
    {.name = "loud", .run = 0.3},
    {.name = "sessions", .session = 0.1},
    {.name = "drift", .drift = 0.5},
    {.name = "two speeds", .slow = 0.3},
    {.name = "bursts", .bursts = 9},
    {.name = "all", .run = 0.05, .session = 0.05, .drift = 0.2, .slow = 0.2, .bursts = 3},
};

// The number that a session gives, whose runs take these seconds where nothing disturbs.
double session_of(const Noise& noise, double seconds, Rng& rng) {
  constexpr int kRuns = 15;
  const double all = std::exp(noise.session * rng.normal()) * (rng.chance(noise.slow) ? 1.6 : 1.0) *
                     std::exp(noise.drift * rng.normal() / 2);
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    double one = seconds * all * std::exp(noise.run * rng.normal());
    one *= 1 + noise.drift * run / kRuns;
    if (rng.chance(0.1)) one *= 1 + noise.bursts;
    runs.push_back(one);
  }
  Timing timing;
  timing.add(runs);
  return timing.quantile(0.1);
}

struct Rule {
  int64_t recorded;
  double least;
};

// The number of alarms in series in which a run takes `factor` times as long as when it was
// recorded.
int alarms(const Noise& noise, const Rule& rule, double factor, int series, uint64_t seed) {
  Rng rng(seed);
  int count = 0;
  for (int i = 0; i < series; ++i) {
    std::vector<double> recorded;
    for (int64_t k = 0; k < rule.recorded; ++k) recorded.push_back(session_of(noise, 1e-3, rng));
    const Slowdown found = slowdown(recorded, {.least = rule.least, .level = 0.01}, [&] {
                             return Result<double>(session_of(noise, 1e-3 * factor, rng));
                           }).value();
    count += found.is_alarm ? 1 : 0;
  }
  return count;
}

TEST(Slowdown, NeedsFewerSessionsWhereMoreWereRecorded) {
  EXPECT_EQ(sessions_for_alarm(1, 0.01), std::nullopt);
  EXPECT_EQ(sessions_for_alarm(2, 0.01), std::nullopt);
  EXPECT_EQ(sessions_for_alarm(3, 0.01), 7);   // 1 / 120
  EXPECT_EQ(sessions_for_alarm(5, 0.01), 4);   // 1 / 126
  EXPECT_EQ(sessions_for_alarm(8, 0.01), 3);   // 1 / 165
  EXPECT_EQ(sessions_for_alarm(13, 0.01), 2);  // 1 / 105
  EXPECT_EQ(sessions_for_alarm(99, 0.01), 1);  // 1 / 100
  EXPECT_EQ(sessions_for_alarm(5, 0.5), 1);
}

// In 1,000 series in which nothing changed there are at most as many alarms as the level allows,
// 10, whatever the machine does. Least 1 leaves the rule no margin: its alarms are those of chance,
// at most 1 / 105 of all series, so 19 of 2,000. Their number is random, and hardly ever 40.
TEST(Slowdown, AlarmsAreAsRareAsTheLevelSays) {
  for (const Noise& noise : kNoises)
    for (const int64_t recorded : {3, 5, 8, 20}) {
      EXPECT_LE(alarms(noise, {recorded, 0.95}, 1, 1000, 7), 10) << noise.name << recorded;
      EXPECT_LE(alarms(noise, {recorded, 1}, 1, 2000, 3), 40) << noise.name << recorded;
    }
}

TEST(Slowdown, AlarmsOfChanceAreNotRarerThanTheyShouldBe) {
  const Noise noise = {.name = "sessions", .session = 0.1};
  const int found = alarms(noise, {5, 1}, 1, 5000, 11);  // 40 are expected
  EXPECT_GT(found, 15);
  EXPECT_LT(found, 70);
}

TEST(Slowdown, IsFoundWhereItIsLargerThanTheNoise) {
  EXPECT_EQ(alarms({.name = "quiet"}, {5, 0.95}, 1.15, 1000, 5), 1000);
  EXPECT_EQ(alarms({.name = "bursts", .bursts = 9}, {5, 0.95}, 1.15, 1000, 5), 1000);
  EXPECT_EQ(alarms({.name = "quiet"}, {5, 0.95}, 1.03, 1000, 5), 0);  // within the margin
  EXPECT_GT(alarms({.name = "sessions", .session = 0.03}, {5, 0.95}, 1.3, 1000, 5), 950);
}

TEST(Slowdown, EndsWithTheFirstSessionThatIsAsFast) {
  int sessions = 0;
  const double recorded[] = {1.0, 1.1, 1.02, 1.05, 1.01};
  const auto run = [&](std::vector<double> times) {
    sessions = 0;
    return slowdown(recorded, {},
                    [&]() -> Result<double> { return times[static_cast<size_t>(sessions++)]; })
        .value();
  };
  const Slowdown same = run({1.0});
  EXPECT_FALSE(same.is_alarm);
  EXPECT_EQ(sessions, 1);
  EXPECT_DOUBLE_EQ(same.speed, 1.02);
  EXPECT_FALSE(run({1.3, 1.3, 1.15}).is_alarm);  // 1.1 / 0.95 is 1.158
  EXPECT_EQ(sessions, 3);
  const Slowdown slower = run({1.3, 1.25, 1.3, 1.3});
  EXPECT_TRUE(slower.is_alarm);
  EXPECT_EQ(sessions, 4);
  EXPECT_DOUBLE_EQ(slower.speed, 1.02 / 1.3);
}

TEST(Slowdown, RefusesTooFewSessionsAndGivesErrorsOn) {
  const double two[] = {1.0, 1.0};
  EXPECT_THAT(slowdown(two, {}, [] { return Result<double>(1.0); }),
              refuses(ErrorCode::bad_input, "2 sessions"));
  const double five[] = {1, 1, 1, 1, 1};
  EXPECT_THAT(slowdown(five, {}, []() -> Result<double> { return unsupported("no machine"); }),
              refuses(ErrorCode::unsupported, "machine"));
}

}  // namespace
}  // namespace hone::HONE_FILE
