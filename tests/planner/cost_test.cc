// The planner chooses by whatever Cost it is given.

#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "oracle/differential.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

// The analytic price upside down: the slowest schedule is the cheapest.
class SlowestCost : public Cost {
 public:
  explicit SlowestCost(Target target) : analytic_(std::move(target)) {}

  class Kernel : public PricedKernel {
   public:
    explicit Kernel(std::unique_ptr<PricedKernel> analytic) : analytic_(std::move(analytic)) {}
    void price(std::span<const Schedule> schedules, double, std::span<double> seconds) override {
      for (size_t i = 0; i < schedules.size(); ++i)
        seconds[i] = 1 / (1 + analytic_->seconds(schedules[i]));
    }

   private:
    std::unique_ptr<PricedKernel> analytic_;
  };

  std::string version() const override { return "slowest"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(analytic_.kernel(std::move(facts), threads));
  }
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }

 private:
  const AnalyticCost analytic_;
};

TEST(PlannersCost, DecidesPlansThatComputeTheSame) {
  const Target target = host_target().value();
  const SlowestCost slowest(target);
  const auto team = Team::create({.threads = target.cores}).value();
  int others = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    DifferentialCase one = {.graph = random_graph({.seed = seed}), .inputs = {}, .isa = target.isa};
    one.inputs = random_inputs(one.graph, seed).value();
    const Graph graph = prepare(one.graph).value();
    one.plan = complete(graph, {}, target, slowest).value();
    others += one.plan != complete(graph, {}, target).value();
    const DifferentialOutcome outcome = run_case(one, target, team);
    EXPECT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason;
  }
  EXPECT_GT(others, 6);
}

// Counts the kernels that it is asked for.
class CountingCost : public SlowestCost {
 public:
  CountingCost(Target target, std::string version)
      : SlowestCost(std::move(target)), version_(std::move(version)) {}
  std::string version() const override { return version_; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    ++kernels;
    return SlowestCost::kernel(std::move(facts), threads);
  }
  mutable int kernels = 0;

 private:
  const std::string version_;
};

TEST(PlannersCost, PricesKernelsThatAnEarlierPlanHadOnlyOnce) {
  const Target target = host_target().value();
  const auto mlp = [](std::string_view last) {
    return prepare(parse_graph(
                       fmt::format(R"(graph @mlp(%x: f32[8, 64], %w: f32[64, 64]) -> f32[8, 64] {{
      %0 = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}
      %1 = tanh %0
      %2 = dot %1, %w {{lhs_contract = [1], rhs_contract = [0]}}
      %3 = {} %2
      return %3
    }})",
                                   last))
                       .value())
        .value();
  };
  for (const std::string version : {"1", ""}) {
    const CountingCost cost(target, version);
    KernelStore known;
    const Plan first = complete(mlp("tanh"), {}, target, cost, {.known = &known}).value();
    const int of_first = cost.kernels;
    EXPECT_GT(of_first, 0);
    EXPECT_EQ(complete(mlp("tanh"), {}, target, cost, {.known = &known}).value(), first);
    if (version.empty()) {  // the answers may be others
      EXPECT_EQ(cost.kernels, 2 * of_first);
      continue;
    }
    EXPECT_EQ(cost.kernels, of_first);
    // The kernel of the last layer is new, that of the first is known.
    const Plan second = complete(mlp("exp"), {}, target, cost, {.known = &known}).value();
    const int of_second = cost.kernels - of_first;
    const CountingCost alone(target, version);
    EXPECT_EQ(complete(mlp("exp"), {}, target, alone).value(), second);
    EXPECT_GT(of_second, 0);
    EXPECT_LT(of_second, alone.kernels);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
