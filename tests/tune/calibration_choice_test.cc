#include "tune/calibration_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cost/analytic.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = host_target().value();
  return target;
}

// The analytic price with two voices, which differ by kernels of one kind.
class TwoVoices : public AnalyticCost {
 public:
  TwoVoices(const Target& target, const KernelFacts* unsure, const Schedule* hope)
      : AnalyticCost(target), unsure_(unsure), hope_(hope) {}
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    const bool is_unsure = facts.get() == unsure_;
    return std::make_unique<Kernel>(AnalyticCost::kernel(std::move(facts), threads), is_unsure,
                                    hope_);
  }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(std::unique_ptr<PricedKernel> analytic, bool is_unsure, const Schedule* hope)
        : analytic_(std::move(analytic)), is_unsure_(is_unsure), hope_(hope) {}
    void price(std::span<const Schedule> schedules, double limit,
               std::span<double> seconds) override {
      analytic_->price(schedules, limit, seconds);
    }
    Votes votes(const Schedule& schedule) override {
      const double one = analytic_->seconds(schedule);
      if (!is_unsure_) return {{one, one}};
      const bool is_hope = hope_ != nullptr && schedule == *hope_;
      return {{one, is_hope ? one / 1e6 : one * (1 + static_cast<double>(asked_++ % 5))}};
    }

   private:
    const std::unique_ptr<PricedKernel> analytic_;
    const bool is_unsure_;
    const Schedule* const hope_;
    int asked_ = 0;
  };
  const KernelFacts* const unsure_;
  const Schedule* const hope_;
};

std::vector<CalibrationKernel> kernels() {
  static const std::vector<CalibrationKernel> all =
      calibration_kernels(target(), AnalyticCost(target()), 1).value();
  return all;
}

// Without differences, what has the largest share of models comes first.
TEST(CalibrationChoice, MeasuresWhatMattersMost) {
  const std::string kind(kernels().back().kind);
  CalibrationChoice choice(kernels(), target(), std::make_shared<AnalyticCost>(target()), 1,
                           {{kind, 0.9}});
  EXPECT_EQ(choice.next()->kind, kind);
  EXPECT_EQ(choice.left(), kernels().size() - 1);
}

TEST(CalibrationChoice, MeasuresWhatThePriceIsLeastSureOf) {
  const std::vector<CalibrationKernel> all = kernels();
  const auto fitted =
      std::ranges::find(all.rbegin(), all.rend(), false, &CalibrationKernel::is_held_out);
  ASSERT_NE(fitted, all.rend());
  const auto price = std::make_shared<TwoVoices>(target(), fitted->facts.get(), nullptr);
  CalibrationChoice choice(all, target(), price, 1, {});
  EXPECT_GT(choice.unsureness(*fitted), choice.unsureness(all[0]));
  EXPECT_EQ(choice.next()->facts, fitted->facts);
}

// A third is held out, and each is taken once.
TEST(CalibrationChoice, TakesEachOnceAndHoldsAThirdOut) {
  CalibrationChoice choice(kernels(), target(), std::make_shared<AnalyticCost>(target()), 1, {});
  std::set<const KernelFacts*> taken;
  size_t held_out = 0;
  for (size_t i = 0; i < 6; ++i) {
    const std::optional<CalibrationKernel> kernel = choice.next();
    ASSERT_TRUE(kernel);
    EXPECT_TRUE(taken.insert(kernel->facts.get()).second);
    held_out += kernel->is_held_out ? 1 : 0;
  }
  EXPECT_EQ(held_out, 2U);
  while (choice.next()) {
  }
  EXPECT_EQ(choice.left(), 0U);
}

// After a kind was measured and its prices were right, other kinds come first.
TEST(CalibrationChoice, LearnsWhichKindsThePriceKnows) {
  const AnalyticCost price(target());
  CalibrationChoice choice(kernels(), target(), std::make_shared<AnalyticCost>(target()), 1, {});
  const CalibrationKernel first = *choice.next();
  TimedKernel timed{.facts = first.facts, .schedules = {first.planned}, .seconds = {}};
  timed.schedules = choice.schedules_of(first, 6, Rng(1));
  for (const Schedule& each : timed.schedules)
    timed.seconds.push_back(price.launch(first.facts->body, each, 1));
  const double before = choice.unsureness(first);
  choice.keep(first.kind, timed);
  EXPECT_LT(choice.unsureness(first), before);
  EXPECT_NE(choice.next()->kind, first.kind);
}

TEST(CalibrationChoice, DrawsSchedulesThatMayBeFaster) {
  const CalibrationKernel kernel = kernels()[0];
  const CalibrationChoice plain({kernel}, target(), std::make_shared<AnalyticCost>(target()), 1,
                                {});
  const std::vector<Schedule> drawn = plain.schedules_of(kernel, 8, Rng(2));
  ASSERT_GE(drawn.size(), 4U);
  EXPECT_EQ(drawn[0], kernel.planned);
  for (size_t i = 0; i < drawn.size(); ++i) EXPECT_EQ(std::ranges::count(drawn, drawn[i]), 1) << i;
  // One that a voice hopes for comes next.
  const Schedule hope = drawn.back();
  const auto price = std::make_shared<TwoVoices>(target(), kernel.facts.get(), &hope);
  const CalibrationChoice choice({kernel}, target(), price, 1, {});
  EXPECT_EQ(choice.schedules_of(kernel, 8, Rng(2))[1], hope);
}

TEST(CalibrationChoice, KnowsTheKindsOfKernelsThatModelsHave) {
  const std::vector<HeldBackModel> models = {
      {"mlp", [] { return build_zoo_model("mlp", {.size = ZooSize::tiny}); }},
      {"none", []() -> Result<Graph> { return bad_input("no model"); }}};
  const auto shares =
      shares_of_kinds(models, target(), std::make_shared<AnalyticCost>(target()), 1, 1);
  double all = 0;
  for (const auto& [kind, share] : shares) all += share;
  EXPECT_NEAR(all, 1, 1e-9);
  EXPECT_FALSE(shares.empty());
  EXPECT_TRUE(
      shares_of_kinds({}, target(), std::make_shared<AnalyticCost>(target()), 1, 1).empty());
}

}  // namespace
}  // namespace hone::HONE_FILE
