#include "transport/link_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::vector<MessageTime> times_of(double latency, double bytes_per_second) {
  std::vector<MessageTime> times;
  for (int64_t bytes = 1; bytes <= 64 << 20; bytes *= 4)
    times.push_back({bytes, latency + static_cast<double>(bytes) / bytes_per_second});
  return times;
}

TEST(LinkFit, FindsTheLineThatMadeTheTimes) {
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const double latency = std::pow(10, -7 + 5 * rng.uniform());
    const double rate = std::pow(10, 6 + 5 * rng.uniform());
    const LinkFit fit = *fit_link(times_of(latency, rate));
    EXPECT_NEAR(fit.latency / latency, 1, 1e-6);
    EXPECT_NEAR(fit.bytes_per_second / rate, 1, 1e-6);
    EXPECT_LT(fit.worst_error, 1e-6);
  }
}

// The sum of the squares of the relative errors.
double loss(const LinkFit& fit, const std::vector<MessageTime>& times) {
  double sum = 0;
  for (const MessageTime& each : times)
    sum += std::pow(fit.seconds(each.bytes) / each.seconds - 1, 2);
  return sum;
}

// No line near it is better, also where the best one lies on the border of those that a link has.
TEST(LinkFit, IsTheBestOfAllLines) {
  Rng rng(2);
  for (int i = 0; i < 200; ++i) {
    std::vector<MessageTime> times = times_of(i % 3 == 0 ? 1e-12 : 1e-5, i % 3 == 1 ? 1e15 : 1e9);
    for (MessageTime& each : times) each.seconds *= 0.5 + rng.uniform();
    const LinkFit fit = *fit_link(times);
    EXPECT_GE(fit.latency, 0);
    EXPECT_GT(fit.bytes_per_second, 0);
    for (const double a : {0.99, 1.0, 1.01})
      for (const double b : {0.99, 1.0, 1.01}) {
        LinkFit other = fit;
        other.latency *= a;
        other.bytes_per_second *= b;
        EXPECT_GE(loss(other, times), loss(fit, times) * (1 - 1e-12));
      }
  }
}

TEST(LinkFit, SaysHowFarItIsOff) {
  std::vector<MessageTime> times = times_of(1e-5, 1e9);
  times[5].seconds *= 3;  // of 1 KiB
  const LinkFit fit = *fit_link(times);
  EXPECT_EQ(fit.worst_bytes, 1024);
  EXPECT_GT(fit.worst_error, 0.5);
  EXPECT_LT(fit.median_error, 0.1);
}

TEST(LinkFit, RefusesTimesThatMakeNoLine) {
  EXPECT_THAT(fit_link({}), refuses(ErrorCode::bad_input, "two sizes"));
  const std::vector<MessageTime> one_size = {{8, 1}, {8, 2}};
  EXPECT_THAT(fit_link(one_size), refuses(ErrorCode::bad_input, "two sizes"));
  for (const double seconds : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    const std::vector<MessageTime> times = {{8, 1}, {16, seconds}};
    EXPECT_THAT(fit_link(times), refuses(ErrorCode::bad_input, "16 bytes"));
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
