#include "tune/tune_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

class TuneKernelTest : public testing::Test {
 protected:
  TunedKernel tune(MeasuredKernels& known, int64_t trials = 60) const {
    TuneKernelOptions options;
    options.search.budget.trials = trials;
    return tune_kernel(facts_, start_, target_, cost_, known, options).value();
  }

  const Target target_ = host_target().value();
  const AnalyticCost cost_{target_};
  const std::shared_ptr<const KernelFacts> facts_ = std::make_shared<const KernelFacts>(body_of_all(
      prepare(parse_graph("graph @g(%x: f32[30, 64]) { %y = softmax %x return %y }").value())
          .value()));
  const Schedule start_ = ScheduleSpace(facts_->body, *facts_, target_).simplest();
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
};

TEST_F(TuneKernelTest, FindsAScheduleThatCanBeCarriedOut) {
  MeasuredKernels known(nullptr, target_, "test");
  const TunedKernel tuned = tune(known);
  EXPECT_TRUE(check_schedule(facts_->body, tuned.schedule, target_).ok());
  EXPECT_LE(tuned.seconds, tuned.before);
  EXPECT_EQ(tuned.is_changed(), !(tuned.schedule == start_));
  EXPECT_GT(tuned.measured, 1);
  EXPECT_LE(tuned.measured, tuned.trials);
  EXPECT_GE(tuned.needed, 1);
  EXPECT_LE(tuned.needed, tuned.measured);
}

// A price that says how many of a batch are worth measuring.
class Worth : public Cost {
 public:
  Worth(const Target& target, int64_t worth) : analytic_(target), worth_(worth) {}
  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(analytic_.kernel(std::move(facts), threads), worth_);
  }
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(std::unique_ptr<PricedKernel> analytic, int64_t worth)
        : analytic_(std::move(analytic)), worth_(worth) {}
    void price(std::span<const Schedule> schedules, double limit,
               std::span<double> seconds) override {
      analytic_->price(schedules, limit, seconds);
    }
    std::optional<int64_t> worth_measuring() const override { return worth_; }

   private:
    const std::unique_ptr<PricedKernel> analytic_;
    const int64_t worth_;
  };
  const AnalyticCost analytic_;
  const int64_t worth_;
};

TEST_F(TuneKernelTest, MeasuresAsManyOfABatchAsThePriceSays) {
  TuneKernelOptions options;
  options.search.budget.trials = 49;  // the start, and one batch
  const auto measured = [&](int64_t worth) {
    MeasuredKernels known(nullptr, target_, "test");
    return tune_kernel(facts_, start_, target_, Worth(target_, worth), known, options)
        .value()
        .measured;
  };
  EXPECT_LE(measured(2), 3);
  EXPECT_GT(measured(100), 13);  // a quarter of the batch, where it says nothing
}

TEST_F(TuneKernelTest, WhatTheLogKnowsIsNotMeasuredAgain) {
  {
    MeasuredKernels known(log_.get(), target_, "test");
    tune(known);
    EXPECT_EQ(known.reused(), 0);
  }
  const int64_t records = log_->counts()->records;
  EXPECT_GT(records, 1);
  MeasuredKernels known(log_.get(), target_, "test");
  tune(known, 30);
  EXPECT_GT(known.reused(), 0);
}

// A record counts for the same code, target and conditions alone.
TEST_F(TuneKernelTest, ARecordIsReusedWhereItIsValid) {
  const auto body = std::make_shared<const KernelBody>(facts_->body);
  const KernelCandidate candidate = candidate_of(body, start_, target_).value();
  const std::string conditions = MeterConditions().text();
  const Measured measured = {.outcome = Outcome::measured, .seconds = {3e-6, 2e-6, 4e-6}};
  const Measured crashed = {.outcome = Outcome::crashed, .detail = "killed by SIGSEGV"};
  MeasuredKernels known(log_.get(), target_, "test");
  known.keep(conditions, {&candidate, 1}, {&measured, 1});
  known.keep("other", {&candidate, 1}, {&crashed, 1});

  MeasuredKernels later(log_.get(), target_, "test");
  EXPECT_EQ(*later.seconds(candidate.code, conditions).value(), 3e-6);
  EXPECT_TRUE(std::isinf(*later.seconds(candidate.code, "other").value()));
  EXPECT_FALSE(later.seconds(candidate.code, "third").value());
  EXPECT_FALSE(later.seconds(candidate.code + 1, conditions).value());
  EXPECT_EQ(later.reused(), 2);
  // Whatever code another hone makes of the schedule.
  const uint64_t kernel = kernel_hash(*body);
  const KernelTime time = *later.time_of(kernel, start_, conditions).value();
  EXPECT_EQ(time.seconds, 3e-6);
  EXPECT_EQ(time.noise, relative_noise(measured.seconds));
  EXPECT_FALSE(later.time_of(kernel + 1, start_, conditions).value());
  EXPECT_FALSE(later.time_of(kernel, start_, "third").value());
  Target other = target_;
  other.cpu = "another processor";
  EXPECT_FALSE(
      MeasuredKernels(log_.get(), other, "test").seconds(candidate.code, conditions).value());
}

// The last that came counts, whatever the clock said of it and whichever version wrote it.
TEST_F(TuneKernelTest, TheClockAndTheVersionDoNotDecide) {
  const auto body = std::make_shared<const KernelBody>(facts_->body);
  const KernelCandidate candidate = candidate_of(body, start_, target_).value();
  const std::string conditions = MeterConditions().text();
  Record record = {.kind = "kernel",
                   .subject = facts_->hash,
                   .choice = print(start_),
                   .code = candidate.code,
                   .target = fingerprint(target_),
                   .conditions = conditions,
                   .seconds = {9e-6},
                   .version = "99.0.0",
                   .time = int64_t{1} << 40};  // the clock was far ahead
  ASSERT_TRUE(log_->add({&record, 1}).ok());
  const Measured measured = {.outcome = Outcome::measured, .seconds = {2e-6}};
  EXPECT_EQ(
      MeasuredKernels(log_.get(), target_, "test").seconds(candidate.code, conditions).value(),
      std::optional(9e-6));
  MeasuredKernels(log_.get(), target_, "test").keep(conditions, {&candidate, 1}, {&measured, 1});
  EXPECT_EQ(
      MeasuredKernels(log_.get(), target_, "test").seconds(candidate.code, conditions).value(),
      std::optional(2e-6));
}

// Another kernel may have the same code: then what is known becomes known of this one, once.
TEST_F(TuneKernelTest, WhatIsKnownOfACodeIsAdopted) {
  const auto body = std::make_shared<const KernelBody>(facts_->body);
  const KernelCandidate candidate = candidate_of(body, start_, target_).value();
  Record record = {.kind = "kernel",
                   .subject = 12345,
                   .choice = "{algorithm = nest, order = [0]}",
                   .code = candidate.code,
                   .target = fingerprint(target_),
                   .conditions = "a",
                   .seconds = {2e-6},
                   .version = "test"};
  ASSERT_TRUE(log_->add({&record, 1}).ok());
  MeasuredKernels known(log_.get(), target_, "test");
  ASSERT_TRUE(known.adopt(candidate, "b", true).ok());
  EXPECT_TRUE(log_->find({.subject = facts_->hash})->empty());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(known.adopt(candidate, "a", true).ok());
  const std::vector<Record> found = log_->find({.subject = facts_->hash}).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].choice, print(start_));
  EXPECT_EQ(found[0].seconds, std::vector<double>{2e-6});
  EXPECT_TRUE(log_->text("kernel", facts_->hash)->has_value());
}

// What cannot be written is known to this process all the same.
TEST_F(TuneKernelTest, ALogThatCannotBeWrittenIsToldOnce) {
  const auto body = std::make_shared<const KernelBody>(facts_->body);
  const KernelCandidate candidate = candidate_of(body, start_, target_).value();
  const Measured measured = {.outcome = Outcome::measured, .seconds = {2e-6}};
  {
    MeasuredKernels known(log_.get(), target_, "test");
    known.keep("a", {&candidate, 1}, {&measured, 1});
    EXPECT_FALSE(known.unwritten());
    EXPECT_TRUE(known.has_kernel(facts_->hash).value());
    EXPECT_FALSE(known.has_kernel(facts_->hash + 1).value());
  }
  const std::unique_ptr<Log> fixed =
      Log::open((folder_.path() / "log.db").native(), Log::Mode::read).value();
  MeasuredKernels known(fixed.get(), target_, "test");
  known.keep("b", {&candidate, 1}, {&measured, 1});
  ASSERT_TRUE(known.unwritten());
  EXPECT_EQ(known.seconds(candidate.code, "b").value(), std::optional(2e-6));
}

}  // namespace
}  // namespace hone::HONE_FILE
