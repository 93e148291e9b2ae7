#include "report/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/cost/kernel_model_testing.h"
#include "tune/measured_cost.h"
#include "tune/measured_kernels.h"

namespace hone::HONE_FILE {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Two equal products and one of its own.
constexpr std::string_view kProducts = R"(
graph @g(%x: f32[16, 32], %w: f32[32, 32], %v: f32[32, 64]) -> f32[16, 64] {
  %a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %b = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %b, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})";

class Explain : public testing::Test {
 protected:
  Explain() {
    Heuristics heuristics;
    heuristics.chains = false;
    Plan partial;
    partial.threads = 1;
    PlannerOptions options;
    options.heuristics = heuristics;
    plan_ = complete(graph_, partial, target_, cost_, options).value();
  }
  // The plan with the simplest schedule for this kernel.
  Plan otherwise(uint64_t kernel) const {
    Plan other = plan_;
    other.schedule.at(kernel) = Schedule();
    return other;
  }
  Explanation explained(const Plan& plan, const ExplainOptions& options = {}) const {
    return explain(graph_, plan, target_, cost_, options).value();
  }

  // Puts into the log what the kernel takes under this plan.
  void keep(uint64_t kernel, const Plan& plan, double seconds) {
    MeasuredKernels known(log_.get(), target_, "test");
    const std::map<std::string, PlannedKernel> kernels = planned_kernels(graph_, plan).value();
    for (const auto& [step, planned] : kernels) {
      if (planned.hash != kernel) continue;
      const std::vector<KernelCandidate> candidates = {
          candidate_of(std::make_shared<const KernelBody>(planned.body), *planned.schedule, target_)
              .value()};
      const std::vector<Measured> results = {
          {.outcome = Outcome::measured, .seconds = std::vector<double>(kPlaces, seconds)}};
      known.keep(conditions_, candidates, results);
    }
  }

  const Target target_ = host_target().value();
  const AnalyticCost cost_{target_};
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
  const std::string conditions_ = MeterConditions{.threads = 1}.text();
  const Graph graph_ = prepare(parse_graph(kProducts).value()).value();
  Plan plan_;
};

// Its body is one step of the plan, and runs five times.
TEST_F(Explain, CountsTheLaunchesOfALoop) {
  const Graph graph = prepare(parse_graph(R"(
    graph @g(%x: f32[16, 2], %xs: f32[5, 2]) {
      %f = scan %x, %xs {carried = 1} body (%s: f32[16, 2], %r: f32[2]) {
        %b = broadcast %r {dims = [16, 2], map = [1]}
        %m = add %s, %b
        return %m
      }
      return %f
    })")
                                  .value())
                          .value();
  const Plan plan = complete(graph, {}, target_, cost_, {}).value();
  const Explanation explanation = explain(graph, plan, target_, cost_).value();
  ASSERT_EQ(explanation.kernels.size(), 1u);
  const ExplainedKernel& kernel = explanation.kernels[0];
  EXPECT_EQ(kernel.steps, 1);
  EXPECT_EQ(kernel.launches, 5);
  EXPECT_DOUBLE_EQ(explanation.priced(), 5 * kernel.chosen.priced);
}

TEST_F(Explain, EqualKernelsAreToldOnceTheDearestFirst) {
  const Explanation explanation = explained(plan_);
  ASSERT_EQ(explanation.kernels.size(), 2u);
  EXPECT_EQ(explanation.kernels[0].steps + explanation.kernels[1].steps, 3);
  EXPECT_GE(explanation.kernels[0].priced(), explanation.kernels[1].priced());
  for (const ExplainedKernel& kernel : explanation.kernels) {
    double largest = 0, sum = 0;
    for (const PriceTerm& term : kernel.chosen.terms) {
      largest = std::max(largest, term.seconds);
      sum += term.seconds;
    }
    EXPECT_GT(largest, 0);
    EXPECT_LE(largest, kernel.chosen.priced);
    EXPECT_GE(sum * (1 + 1e-12), kernel.chosen.priced);
    EXPECT_GT(kernel.memory_roof, 0);
    EXPECT_FALSE(kernel.others.empty());
    for (const ScheduleFigures& other : kernel.others)
      EXPECT_NE(other.schedule.algorithm(), kernel.chosen.schedule.algorithm());
  }
  for (const ExplainedKernel& kernel : explanation.kernels)
    EXPECT_EQ(kernel.launches, static_cast<double>(kernel.steps)) << "there is no loop";
  const std::string text = explanation_text(explanation, 1);
  EXPECT_THAT(text, ContainsRegex("\n1\\. dot, [12] steps?, [0-9.]+% of the price\n"));
  EXPECT_THAT(text, HasSubstr("\n1 cheaper ones"));
}

// A product that is too small for two threads, a sum to one number, and a sort of one line.
TEST_F(Explain, SaysWhyOneThreadComputesAKernel) {
  const Graph graph = prepare(parse_graph(R"(
graph @g(%x: f32[16, 32], %w: f32[32, 32], %l: f32[4096]) -> (f32[16, 32], f32[], f32[4096]) {
  %a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %s = reduce %l {kind = sum, axes = [0]}
  %o = sort %l {axis = 0}
  return %a, %s, %o
})")
                                  .value())
                          .value();
  Plan partial;
  partial.threads = 2;
  const Plan plan = complete(graph, partial, target_, cost_, {}).value();
  const Explanation explanation = explain(graph, plan, target_, cost_).value();
  bool has_divided = false, has_reason = false;
  for (const ExplainedKernel& kernel : explanation.kernels) {
    ASSERT_EQ(kernel.undivided.has_value(), kernel.chosen.schedule.threads == 0) << kernel.name;
    if (!kernel.undivided) continue;
    const std::optional<ScheduleFigures>& divided = kernel.undivided->divided;
    EXPECT_NE(divided.has_value(), !kernel.undivided->why.empty()) << kernel.name;
    if (divided) EXPECT_GT(divided->schedule.threads, 0) << kernel.name;
    has_divided |= divided.has_value();
    has_reason |= !divided.has_value();
  }
  EXPECT_TRUE(has_divided);
  EXPECT_TRUE(has_reason);
  const std::string text = explanation_text(explanation, SIZE_MAX);
  EXPECT_THAT(text, ContainsRegex("\n  threads +one: divided among 2 it is priced [0-9.]+ .s"));
  EXPECT_THAT(explanation_json(explanation), HasSubstr("\"undivided\": "));
  for (const ExplainedKernel& kernel : explained(plan_).kernels)
    EXPECT_FALSE(kernel.undivided) << "there is one thread";
}

TEST_F(Explain, TellsWhatThePlannerWouldHaveDecided) {
  const uint64_t changed = plan_.schedule.begin()->first;
  ExplainOptions options;
  options.planned = &plan_;
  for (const ExplainedKernel& kernel : explained(otherwise(changed), options).kernels)
    EXPECT_EQ(kernel.planned.has_value(), kernel.hash == changed);
}

TEST_F(Explain, HasTheTimesOfTheLogForThisVeryCode) {
  const uint64_t one = plan_.schedule.begin()->first;
  keep(one, plan_, 3e-6);
  ExplainOptions options;
  options.log = log_.get();
  const Explanation explanation = explained(plan_, options);
  for (const ExplainedKernel& kernel : explanation.kernels)
    EXPECT_EQ(kernel.chosen.measured.contains(conditions_), kernel.hash == one);
  EXPECT_THAT(explanation_text(explanation, 2), HasSubstr("measured   3"));
  for (const ExplainedKernel& kernel : explained(otherwise(one), options).kernels)
    EXPECT_TRUE(kernel.chosen.measured.empty());
}

TEST_F(Explain, TellsWhatAnotherScheduleHasBought) {
  const uint64_t changed = plan_.schedule.begin()->first;
  const Plan tuned = otherwise(changed);
  ExplainOptions options;
  options.log = log_.get();
  options.planned = &plan_;
  keep(changed, plan_, 3e-6);  // one of the two alone says nothing
  EXPECT_THAT(explanation_text(explained(tuned, options), 2), Not(HasSubstr("as fast now")));
  keep(changed, tuned, 2e-6);
  EXPECT_THAT(explanation_text(explained(tuned, options), 2),
              AllOf(HasSubstr("planner's"), HasSubstr("it is 1.500x as fast now")));
}

// A price that has no parts says so, in text and data.
TEST_F(Explain, APriceMayHaveNoTerms) {
  TableCost measured(std::make_shared<AnalyticCost>(target_));
  for (const auto& [kernel, schedule] : plan_.schedule) measured.set(kernel, schedule, 5e-6);
  const Explanation explanation = explain(graph_, plan_, target_, measured).value();
  for (const ExplainedKernel& kernel : explanation.kernels)
    EXPECT_TRUE(kernel.chosen.terms.empty());
  EXPECT_THAT(explanation_text(explanation, 1),
              HasSubstr("price      5.00 us, measured, without terms"));
  EXPECT_THAT(explanation_json(explanation), HasSubstr("\"terms\": null"));
}

TEST_F(Explain, TheDifferenceHasTheKernelsThatDiffer) {
  const Explanation first = explained(plan_);
  EXPECT_THAT(explained_difference(first, first, "a", "b"), HasSubstr("no kernel differs"));
  const Explanation second = explained(otherwise(plan_.schedule.begin()->first));
  const std::string text = explained_difference(first, second, "a", "b");
  EXPECT_THAT(text, ContainsRegex("\ndot +[12] +(gemm|nest) +.*generic"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
}

// The trust in a learned price: whom it trusts, and why not the others.
TEST_F(Explain, TellsWhatLearnedPricesStandOn) {
  KernelModel model = random_model(target_, 1);
  const auto text_by = [&](const KernelModel& model) {
    const LearnedCost cost(target_, std::make_shared<const KernelModel>(model), nullptr,
                           "my.model");
    const Explanation explanation = explain(graph_, plan_, target_, cost).value();
    EXPECT_EQ(explanation.unknown(), model.reach > 0 ? 0u : 2u);
    EXPECT_THAT(explanation_json(explanation), HasSubstr("\"trust\""));
    return trust_text(explanation, 1);
  };
  EXPECT_THAT(text_by(model), AllOf(HasSubstr("learned prices, my.model\n"),
                                    ContainsRegex("\n1\\. +dot .* x [0-9.]+ +[0-9]+ % +40 %"),
                                    Not(HasSubstr("\n2.")), Not(HasSubstr("no say"))));
  model.reach = 0;
  EXPECT_THAT(text_by(model),
              AllOf(HasSubstr(" analytic\n"), HasSubstr("why networks have no say:"),
                    ContainsRegex("\n1\\. the kernel is [^ ]+ from the nearest")));
  EXPECT_EQ(trust_text(explained(plan_), 9), "no price is learned\n");
  EXPECT_EQ(explained(plan_).unknown(), 0u);
}

// Prices by the log, beside networks that know nothing: what was measured needs no network.
TEST_F(Explain, KernelsWithTimesAreNotUnknown) {
  KernelModel model = random_model(target_, 1);
  model.reach = 0;
  const auto learned =
      std::make_shared<const LearnedCost>(target_, std::make_shared<const KernelModel>(model));
  const auto unknown = [&] {
    const std::shared_ptr<const Cost> cost = measured_cost(*log_, target_, learned).value();
    return explain(graph_, plan_, target_, *cost).value().unknown();
  };
  EXPECT_EQ(unknown(), 2u);
  keep(plan_.schedule.begin()->first, plan_, 3e-6);
  EXPECT_EQ(unknown(), 1u);
}

}  // namespace
}  // namespace hone::HONE_FILE
