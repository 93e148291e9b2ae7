#include "tune/tune_kernel.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "tests/tune/softmax_testing.h"

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
  const std::shared_ptr<const KernelFacts> facts_ = tested::softmax_facts();
  const Schedule start_ = tested::simplest_schedule(*facts_, target_);
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

}  // namespace
}  // namespace hone::HONE_FILE
