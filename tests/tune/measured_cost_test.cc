#include "tune/measured_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/program/random_kernels.h"
#include "tests/tune/trusted_price_testing.h"
#include "tune/measured_kernels.h"

namespace hone::HONE_FILE {
namespace {

class MeasuredCostTest : public testing::Test {
 protected:
  void keep(const Schedule& schedule, double seconds, int64_t threads, bool is_cold = false) {
    const auto body = std::make_shared<const KernelBody>(facts_->body);
    const KernelCandidate candidate = candidate_of(body, schedule, target_).value();
    const Measured measured = {.outcome = Outcome::measured, .seconds = {seconds}};
    MeterConditions conditions;
    conditions.threads = threads;
    if (is_cold) conditions.cold = {true};
    MeasuredKernels(log_.get(), target_, "test")
        .keep(conditions.text(), {&candidate, 1}, {&measured, 1});
  }
  std::shared_ptr<const Cost> cost() { return measured_cost(*log_, target_, analytic_).value(); }

  const Target target_ = host_target().value();
  const std::shared_ptr<const AnalyticCost> analytic_ = std::make_shared<AnalyticCost>(target_);
  const std::shared_ptr<const KernelFacts> facts_ = std::make_shared<const KernelFacts>(body_of_all(
      prepare(parse_graph("graph @g(%x: f32[30, 64]) { %y = tanh %x return %y }").value())
          .value()));
  const ScheduleSpace space_ = {facts_->body, *facts_, target_};
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
};

TEST_F(MeasuredCostTest, SaysWhatWasMeasuredAndOtherwiseInProportion) {
  const Schedule first = space_.simplest();
  Rng rng(1);
  Schedules others;
  while (others.size() < 2) {
    const Schedule next = space_.sample(rng);
    if (next != first && std::ranges::find(others, next) == others.end()) others.push_back(next);
  }
  const std::unique_ptr<PricedKernel> analytic = analytic_->kernel(facts_, 1);
  EXPECT_EQ(cost()->kernel(facts_, 1)->seconds(first), analytic->seconds(first));

  keep(first, 1, 1);
  keep(first, 3 * analytic->seconds(first), 1);  // the last one counts
  keep(others[0], 1, 2);                         // by other threads
  const std::shared_ptr<const Cost> cost = this->cost();
  const std::unique_ptr<PricedKernel> measured = cost->kernel(facts_, 1);
  EXPECT_EQ(measured->seconds(first), 3 * analytic->seconds(first));
  EXPECT_NEAR(measured->seconds(others[1]), 3 * analytic->seconds(others[1]), 1e-12);
  EXPECT_EQ(measured->source(first), "measured");
  EXPECT_EQ(measured->source(others[1]), "analytic");
  EXPECT_TRUE(measured->terms(first).empty());
  EXPECT_EQ(cost->version(), "");
  EXPECT_EQ(cost->kernel(facts_, 2)->seconds(others[0]), 1) << "the same cost knows both";
  EXPECT_EQ(cost->kernel(facts_, 2)->source(first), "analytic");
  EXPECT_EQ(cost->kernel(facts_, 3)->source(others[0]), "analytic");

  keep(others[0], 2, 1, true);  // under other conditions: earlier times do not compare
  const std::shared_ptr<const Cost> cold = this->cost();
  EXPECT_EQ(cold->kernel(facts_, 1)->seconds(others[0]), 2);
  EXPECT_EQ(cold->kernel(facts_, 1)->source(first), "analytic");
  keep(others[1], 4, 1);  // and those under these count again, with what was measured before
  EXPECT_EQ(this->cost()->kernel(facts_, 1)->source(first), "measured");
}

// A price that is trusted with schedules alone is so beside measurements, too.
TEST_F(MeasuredCostTest, KeepsTrustAndBaselineOfWhatItStandsBeside) {
  Rng rng(7);
  const Schedule fast = space_.simplest();
  Schedule slow = space_.sample(rng);
  while (slow == fast) slow = space_.sample(rng);
  keep(space_.simplest(), 1, 1);
  const auto never =
      std::make_shared<TrustedPrice>(target_, TrustedPrice::Says{.lead = 1, .worth_measuring = 3});
  const std::shared_ptr<const Cost> cost = measured_cost(*log_, target_, never).value();
  // Only one of both has a time: the other price decides. Then the times do.
  EXPECT_FALSE(cost->kernel(facts_, 1)->is_surely_cheaper(fast, slow));
  keep(slow, 2, 1);
  const std::shared_ptr<const Cost> both = measured_cost(*log_, target_, never).value();
  EXPECT_TRUE(both->kernel(facts_, 1)->is_surely_cheaper(fast, slow));
  EXPECT_FALSE(both->kernel(facts_, 1)->is_surely_cheaper(slow, fast));
  EXPECT_EQ(cost->kernel(facts_, 1)->worth_measuring(), 3);
  ASSERT_NE(cost->baseline(), nullptr);
  EXPECT_EQ(cost->baseline()->kernel(facts_, 1)->seconds(space_.simplest()), 1);
  EXPECT_EQ(this->cost()->baseline(), nullptr);
}

}  // namespace
}  // namespace hone::HONE_FILE
