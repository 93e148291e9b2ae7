// The planner chooses by whatever Cost it is given.

#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "cost/analytic.h"
#include "oracle/differential.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"

namespace hone {
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

}  // namespace
}  // namespace hone
