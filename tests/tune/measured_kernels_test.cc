#include "tune/measured_kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "target/fingerprint.h"
#include "tests/tune/softmax_testing.h"

namespace hone::HONE_FILE {
namespace {

class MeasuredKernelsTest : public testing::Test {
 protected:
  const Target target_ = host_target().value();
  const std::shared_ptr<const KernelFacts> facts_ = tested::softmax_facts();
  const Schedule start_ = tested::simplest_schedule(*facts_, target_);
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
};

// A record counts for the same code, target and conditions alone.
TEST_F(MeasuredKernelsTest, ARecordIsReusedWhereItIsValid) {
  const auto body = std::make_shared<const KernelBody>(facts_->body);
  const KernelCandidate candidate = candidate_of(body, start_, target_).value();
  const std::string conditions = MeterConditions().text();
  const Measured measured = {.outcome = Outcome::measured, .seconds = {3e-6, 2e-6, 4e-6}};
  const Measured crashed = {.outcome = Outcome::crashed, .detail = "killed by SIGSEGV"};
  MeasuredKernels known(log_.get(), target_, "test");
  known.keep(conditions, {&candidate, 1}, {&measured, 1});
  known.keep("other", {&candidate, 1}, {&crashed, 1});

  MeasuredKernels later(log_.get(), target_, "test");
  EXPECT_EQ(later.time(candidate.code, conditions).value()->seconds, 3e-6);
  EXPECT_TRUE(std::isinf(later.time(candidate.code, "other").value()->seconds));
  EXPECT_FALSE(later.time(candidate.code, "third").value());
  EXPECT_FALSE(later.time(candidate.code + 1, conditions).value());
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
  EXPECT_FALSE(MeasuredKernels(log_.get(), other, "test").time(candidate.code, conditions).value());
}

// The last that came counts, whatever the clock said of it and whichever version wrote it.
TEST_F(MeasuredKernelsTest, TheClockAndTheVersionDoNotDecide) {
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
  const auto seconds = [&] {
    return MeasuredKernels(log_.get(), target_, "test")
        .time(candidate.code, conditions)
        .value()
        ->seconds;
  };
  EXPECT_EQ(seconds(), 9e-6);
  MeasuredKernels(log_.get(), target_, "test").keep(conditions, {&candidate, 1}, {&measured, 1});
  EXPECT_EQ(seconds(), 2e-6);
}

// Another kernel may have the same code: then what is known becomes known of this one, once.
TEST_F(MeasuredKernelsTest, WhatIsKnownOfACodeIsAdopted) {
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
  EXPECT_FALSE(known.recall(candidate, "b", true).value());
  EXPECT_TRUE(log_->find({.subject = facts_->hash})->empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(known.recall(candidate, "a", true).value()->seconds, 2e-6);
  const std::vector<Record> found = log_->find({.subject = facts_->hash}).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].choice, print(start_));
  EXPECT_EQ(found[0].seconds, std::vector<double>{2e-6});
  EXPECT_TRUE(log_->text("kernel", facts_->hash)->has_value());
}

// If the log cannot be written, this process knows the time all the same.
TEST_F(MeasuredKernelsTest, ALogThatCannotBeWrittenIsToldOnce) {
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
  EXPECT_EQ(known.time(candidate.code, "b").value()->seconds, 2e-6);
}

}  // namespace
}  // namespace hone::HONE_FILE
