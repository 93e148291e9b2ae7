#include "tune/judged_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "target/fingerprint.h"
#include "tests/program/random_kernels.h"
#include "tests/target/target_testing.h"
#include "tune/kernel_meter.h"

namespace hone::HONE_FILE {
namespace {

class JudgedLogTest : public testing::Test {
 protected:
  // Eight schedules, the cheapest by price first.
  std::vector<Schedule> schedules() const {
    const ScheduleSpace space(facts_->body, *facts_, target_);
    Rng rng(3);
    std::vector<Schedule> all;
    while (all.size() < 8) {
      Schedule next = space.sample(rng);
      const auto price = [&](const Schedule& one) { return cost_.kernel(facts_, 1)->seconds(one); };
      if (std::ranges::find(all, price(next), price) == all.end()) all.push_back(std::move(next));
    }
    std::ranges::sort(all, {},
                      [&](const Schedule& one) { return cost_.kernel(facts_, 1)->seconds(one); });
    return all;
  }
  void keep(const Schedule& schedule, double seconds, const MeterConditions& conditions = {}) {
    const uint64_t hash = kernel_hash(facts_->body);
    const Record record = {.kind = "kernel",
                           .subject = hash,
                           .choice = print(schedule),
                           .code = ++code_,
                           .target = fingerprint(target_),
                           .conditions = conditions.text(),
                           .seconds = std::vector<double>(9, seconds),
                           .version = "test"};
    const KnownText text = {"kernel", hash, print(facts_->body)};
    ASSERT_TRUE(log_->add({&record, 1}, {&text, 1}).ok());
  }
  LogVerdict verdict(size_t most = 9) const {
    return judge_by_log(*log_, target_, cost_, most).value();
  }

  const Target target_ = parse_target(kSampleTarget, "t").value();
  const AnalyticCost cost_{target_};
  const std::shared_ptr<const KernelFacts> facts_ = std::make_shared<const KernelFacts>(
      body_of_all(parse_graph("graph @g(%x: f32[30, 64]) { %y = tanh %x return %y }").value()));
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
  uint64_t code_ = 0;
};

TEST_F(JudgedLogTest, KnowsNothingOfFewTimes) {
  EXPECT_EQ(verdict().kernels, 0U);
  const std::vector<Schedule> all = schedules();
  for (int i = 0; i < 3; ++i) keep(all[static_cast<size_t>(i)], 1);
  EXPECT_EQ(verdict().kernels, 0U);
}

// Times with cold inputs do not compare with others; those of several threads say nothing here.
TEST_F(JudgedLogTest, JudgesEachConditionAlone) {
  const std::vector<Schedule> all = schedules();
  for (size_t i = 0; i < all.size(); ++i) {
    keep(all[i], static_cast<double>(2 + i));
    keep(all[i], static_cast<double>(10 - i), {.cold = {true}});
    keep(all[i], static_cast<double>(10 - i), {.threads = 2});
  }
  EXPECT_EQ(verdict().kernels, 2U);
  EXPECT_EQ(verdict().schedules, 16U);
  EXPECT_EQ(verdict().tau, 0);
}

TEST_F(JudgedLogTest, ComparesTheOrderOfPricesWithThatOfTimes) {
  const std::vector<Schedule> all = schedules();
  for (size_t i = 0; i < all.size(); ++i) keep(all[i], static_cast<double>(2 + i));
  EXPECT_EQ(verdict().kernels, 1U);
  EXPECT_EQ(verdict().schedules, 8U);
  EXPECT_EQ(verdict().regret, 0);
  EXPECT_EQ(verdict().tau, 1);
  EXPECT_EQ(verdict(0).kernels, 0U);
  // The last time of a schedule counts.
  for (size_t i = 0; i < all.size(); ++i) keep(all[i], static_cast<double>(10 - i));
  EXPECT_NEAR(verdict().regret, 10.0 / 3 - 1, 1e-12);
  EXPECT_EQ(verdict().tau, -1);
}

}  // namespace
}  // namespace hone::HONE_FILE
