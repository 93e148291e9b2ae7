#include "measure/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

TEST(Timing, TellsMedianAndQuantiles) {
  EXPECT_EQ((Timing{{1, 2, 3, 4}}).median(), 2.5);
  EXPECT_EQ((Timing{{1, 2, 3}}).median(), 2);
  EXPECT_EQ((Timing{{1, 2, 3, 4}}).quantile(1), 4);
  EXPECT_EQ((Timing{{1, 2, 3, 4}}).min(), 1);
  Timing timing;
  timing.add(std::vector<double>{3, 1});
  timing.add(std::vector<double>{2});
  EXPECT_EQ(timing.seconds, (std::vector<double>{1, 2, 3}));
}

// The tables of the sign test: 6 samples: all; 10: from the second; 20: from the sixth.
TEST(Timing, TheMedianLiesInAnInterval) {
  const auto interval = [](int samples) {
    std::vector<double> sorted;
    for (int i = 1; i <= samples; ++i) sorted.push_back(i);
    return median_interval(sorted);
  };
  EXPECT_FALSE(interval(0).has_value());
  EXPECT_FALSE(interval(5).has_value());
  EXPECT_EQ(interval(6)->low, 1);
  EXPECT_EQ(interval(10)->low, 2);
  EXPECT_EQ(interval(10)->high, 9);
  EXPECT_EQ(interval(20)->low, 6);
  EXPECT_EQ(interval(20)->high, 15);
}

TEST(Timing, TheIntervalHoldsTheMedianNineteenTimesOfTwenty) {
  Rng rng(1);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples;
    for (int i = 0; i < 25; ++i) samples.push_back(std::exp(3 * rng.uniform()));  // skewed
    std::ranges::sort(samples);
    const Interval interval = *median_interval(samples);
    held += interval.low <= std::exp(1.5) && std::exp(1.5) <= interval.high ? 1 : 0;
  }
  EXPECT_GE(held, kTrials * 19 / 20);
}

TEST(Timing, TellsNoise) {
  Timing steady, wide, two = {{1, 1}};
  for (int i = 0; i < 100; ++i) steady.seconds.push_back(1 + 0.0001 * i);
  for (int i = 0; i < 100; ++i) wide.seconds.push_back(1 + (i > 80 ? 1 : 0));
  EXPECT_EQ(noise_of(steady), "");
  EXPECT_EQ(noise_of(wide), "p90 is 2 x the median");
  EXPECT_EQ(noise_of(two), "2 runs say little");
  EXPECT_THAT(noise_of({{0, 0, 0}}), HasSubstr("shorter than the clock"));
}

TEST(Measure, RunsAsOftenAsItIsTold) {
  const CancelToken cancel;
  int runs = 0;
  const auto run = [&]() -> Status {
    ++runs;
    return {};
  };
  EXPECT_EQ(measure({.seconds = 0, .warmup = 0}, cancel, run)->seconds.size(), 3U);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(measure({.seconds = 100, .warmup = 2, .runs = 5}, cancel, run)->seconds.size(), 5U);
  EXPECT_EQ(runs, 10);
  CancelToken cancelled;
  cancelled.cancel();
  EXPECT_EQ(measure({}, cancelled, run).error().code(), ErrorCode::interrupted);
}

TEST(PeakMemory, SeesWhatIsTouchedSinceItStarted) {
  PeakMemory::start();
  const int64_t before = PeakMemory::bytes();
  EXPECT_GT(before, 0);
  std::vector<char> block(size_t{64} << 20, 1);
  EXPECT_GE(PeakMemory::bytes(), before + (int64_t{60} << 20)) << block[12345];
}

}  // namespace
}  // namespace hone::HONE_FILE
