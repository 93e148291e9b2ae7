#include "tune/refit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

// A kernel whose times differ from its prices by what its schedules have in common.
class RefitTest : public testing::Test {
 protected:
  RefitTest() {
    const ScheduleSpace space(facts_->body, *facts_, target_);
    AnalyticKernel analytic(facts_, target_, {}, 1);
    Rng rng(5);
    for (int i = 0; i < 1600; ++i) {
      Features features;
      schedules_.push_back(space.sample(rng));
      prices_.push_back(analytic.describe(schedules_.back(), features));
      const double wrong = 0.4 * double{features.unroll} - 0.5 * double{features.lanes} +
                           0.6 * double{features.depth};
      seconds_.push_back(7 * prices_.back() * std::exp(wrong));
    }
  }

  // How many are measured, four of sixteen each time, until one is as fast as the fastest of those
  // that come: in all batches.
  size_t regrets(bool refits) const {
    Refit refit(facts_, target_, 1);
    size_t misses = 0;
    for (size_t from = 0; from + 16 <= schedules_.size(); from += 16) {
      const auto batch = std::span(schedules_).subspan(from, 16);
      std::vector<double> prices(prices_.begin() + std::ssize(std::span(prices_).first(from)),
                                 prices_.begin() + static_cast<std::ptrdiff_t>(from + 16));
      if (refits) refit.correct(batch, prices);
      std::vector<size_t> order(16);
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::sort(order, {}, [&](size_t i) { return std::pair(prices[i], i); });
      const auto best = static_cast<size_t>(
          std::ranges::min_element(seconds_.begin() + static_cast<std::ptrdiff_t>(from),
                                   seconds_.begin() + static_cast<std::ptrdiff_t>(from + 16)) -
          seconds_.begin());
      misses += static_cast<size_t>(std::ranges::find(order, best - from) - order.begin());
      for (size_t i : std::span(order).first(4))
        refit.keep(batch[i], prices_[from + i], seconds_[from + i]);
    }
    return misses;
  }

  const Target target_ = host_target().value();
  const std::shared_ptr<const KernelFacts> facts_ = std::make_shared<const KernelFacts>(body_of_all(
      prepare(parse_graph("graph @g(%x: f32[30, 64]) { %y = softmax %x return %y }").value())
          .value()));
  std::vector<Schedule> schedules_;
  std::vector<double> prices_, seconds_;
};

TEST_F(RefitTest, PutsTheFastestSooner) { EXPECT_LT(2 * regrets(true), regrets(false)); }

TEST_F(RefitTest, LeavesPricesAloneUntilItKnowsEnough) {
  Refit refit(facts_, target_, 1);
  std::vector<double> prices = prices_;
  for (size_t i = 0; i + 1 < Refit::kLeast; ++i) refit.keep(schedules_[i], prices_[i], seconds_[i]);
  refit.correct(schedules_, prices);
  EXPECT_EQ(prices, prices_);
  refit.keep(schedules_[50], prices_[50], seconds_[50]);
  refit.correct(schedules_, prices);
  EXPECT_NE(prices, prices_);
}

// A factor that all times share is part of the price, too.
TEST_F(RefitTest, FindsTheLevel) {
  Refit refit(facts_, target_, 1);
  for (size_t i = 0; i < 20; ++i) refit.keep(schedules_[i], prices_[i], 3 * prices_[i]);
  std::vector<double> prices = prices_;
  refit.correct(schedules_, prices);
  for (size_t i = 0; i < prices.size(); ++i) EXPECT_NEAR(prices[i] / prices_[i], 3, 1e-6);
}

}  // namespace
}  // namespace hone::HONE_FILE
