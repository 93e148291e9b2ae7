// Choices of a Cost that may be wrong: they take the place of its baseline's where they are surely
// cheaper.

#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/op_facts.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

// Two products, which the analytic price joins.
Graph graph() {
  return prepare(parse_graph(
                     R"(graph @g(%x: f32[64, 96], %v: f32[96, 96], %w: f32[96, 64]) -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = max %h, 0
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                     .value())
      .value();
}

// Says that kernels of several products cost some times the analytic price. Its voices disagree
// about them by a factor.
class FearsChains : public Cost {
 public:
  struct Says {
    double times = 1;
    double apart = 1;
    std::optional<double> sureness = kUsualSureness;
  };
  explicit FearsChains(const Says& says) : says_(says), analytic_(target()) {}

  std::string version() const override { return "fears chains"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    int products = 0;
    for (NodeId n : facts->body.graph.nodes())
      products += is_dot(facts->body.graph.opcode(n)) ? 1 : 0;
    const bool is_chain = products > 1;
    return std::make_unique<Kernel>(analytic_.kernel(std::move(facts), threads),
                                    is_chain ? says_.times : 1, is_chain ? says_.apart : 1);
  }
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }
  const Cost* baseline() const override { return &analytic_; }
  std::optional<double> sureness() const override { return says_.sureness; }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(std::unique_ptr<PricedKernel> analytic, double times, double apart)
        : analytic_(std::move(analytic)), times_(times), apart_(apart) {}
    void price(std::span<const Schedule> schedules, double, std::span<double> seconds) override {
      analytic_->price(schedules, INFINITY, seconds);
      for (double& each : seconds) each *= times_;
    }
    Votes votes(const Schedule& schedule) override {
      const double price = seconds(schedule);
      return {.seconds = {price / apart_, price * apart_}};
    }

   private:
    const std::unique_ptr<PricedKernel> analytic_;
    const double times_, apart_;
  };

  const Says says_;
  const AnalyticCost analytic_;
};

Plan plan_by(const Cost& cost) {
  Plan threads;
  threads.threads = 1;
  return complete(graph(), threads, target(), cost).value();
}

TEST(SurePlans, TakeGroupsThatAreSurelyCheaper) {
  const AnalyticCost analytic(target());
  const Plan usual = plan_by(analytic);
  ASSERT_EQ(usual.fuse.size(), 1U);
  const Plan apart = plan_by(FearsChains({.times = 10}));
  EXPECT_EQ(apart.fuse.size(), 2U);
  EXPECT_TRUE(check_complete(apart, graph(), target()).ok());
}

TEST(SurePlans, KeepTheBaselinesGroupsInDoubt) {
  const Plan usual = plan_by(AnalyticCost(target()));
  const auto stays = [&](const FearsChains::Says& says) {
    const Plan plan = plan_by(FearsChains(says));
    return plan.fuse == usual.fuse && plan.layout == usual.layout && plan.offset == usual.offset;
  };
  EXPECT_TRUE(stays({.times = 10, .apart = 20}));  // voices disagree
  EXPECT_FALSE(stays({.times = 10, .apart = 20, .sureness = 0.5}));
  EXPECT_TRUE(stays({.times = 10, .sureness = std::nullopt}));  // trusted with schedules alone
  EXPECT_TRUE(stays({.times = 1}));                             // nothing gains
}

TEST(SurePlans, AreTheSameEachTime) {
  const FearsChains cost({.times = 10});
  EXPECT_TRUE(plan_by(cost) == plan_by(cost));
}

}  // namespace
}  // namespace hone::HONE_FILE
