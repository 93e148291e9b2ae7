// A model of whole plans ranks the best few plans of the planner.

#include "planner/few_plans.h"

#include <gtest/gtest.h>

#include "cost/learned_cost.h"
#include "ir/text.h"
#include "planner/complete_once.h"
#include "planner/order.h"
#include "rewrite/prepare.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/cost/plan_model_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

// Two products, which the analytic price joins.
const Graph& graph() {
  static const Graph graph =
      prepare(parse_graph(
                  R"(graph @g(%x: f32[64, 96], %v: f32[96, 96], %w: f32[96, 64]) -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = max %h, 0
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                  .value())
          .value();
  return graph;
}

// Two branches, whose nodes take turns.
const Graph& branches() {
  static const Graph graph = prepare(parse_graph(R"(graph @g(%x: f32[64, 64]) -> f32[64, 64] {
  %a1 = exp %x
  %b1 = tanh %x
  %a2 = exp %a1
  %b2 = tanh %b1
  %a3 = exp %a2
  %b3 = tanh %b2
  %y = add %a3, %b3
  return %y
})")
                                         .value())
                                 .value();
  return graph;
}

Plan open(int64_t threads = 1) {
  Plan open;
  open.threads = threads;
  return open;
}

// A learned price that knows no kernel, so that the analytic one counts.
LearnedCost prices() {
  KernelModel model = random_model(target(), 1);
  model.seen.clear();
  return {target(), std::make_shared<const KernelModel>(model),
          std::make_shared<const AnalyticCost>(target())};
}

// The same with a model of plans that says so of kernels of a kind.
LearnedCost fears(std::string_view kind, float times = 3, double lead = 0.01) {
  const LearnedCost cost = prices();
  PlanModel model = plan_model_by(target(), cost, kind_feature(kind), times);
  model.lead = lead;
  return {cost, std::make_shared<const PlanModel>(model)};
}

Plan plan_by(const LearnedCost& cost, const Plan& partial = open()) {
  return complete(graph(), partial, target(), cost).value();
}

TEST(FewPlans, DifferAndBeginWithTheUsualOne) {
  const LearnedCost cost = prices();
  const std::vector<Plan> plans =
      few_plans(graph(), open(), target(), cost, quick_variants({})).value();
  ASSERT_GE(plans.size(), 2U);
  EXPECT_EQ(plans[0], complete_once(graph(), open(), target(), cost, {}).value());
  EXPECT_EQ(plans[0].fuse.size(), 1U);
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_TRUE(check_complete(plans[i], graph(), target()).ok());
    for (size_t k = 0; k < i; ++k) EXPECT_FALSE(plans[i] == plans[k]);
  }
}

// Variants share what is found out about kernels, so their plans are those without sharing.
TEST(FewPlans, AreThoseOfThePlannerAlone) {
  const LearnedCost cost = prices();
  PlannerOptions without;
  without.heuristics.chains = false;
  const Heuristics variants[] = {without.heuristics};
  const std::vector<Plan> plans = few_plans(graph(), open(), target(), cost, variants).value();
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[1], complete_once(graph(), open(), target(), cost, without).value());
}

TEST(FewPlans, NoVariantIsPlannedThatCannotDiffer) {
  EXPECT_EQ(quick_variants({}).size(), 3U);
  const std::vector<Heuristics> variants = variants_for(graph(), {});
  ASSERT_EQ(variants.size(), 2U);
  for (const Heuristics& each : variants) EXPECT_TRUE(each.concat_views);
  const Graph joined = parse_graph(R"(graph @g(%x: f32[8], %y: f32[8]) -> f32[16] {
  %j = concat %x, %y {axis = 0}
  return %j
})")
                           .value();
  EXPECT_EQ(variants_for(joined, {}).size(), 3U);
}

TEST(FewPlans, TheModelOfPlansTakesOne) {
  const Plan usual = plan_by(prices());
  ASSERT_EQ(usual.fuse.size(), 1U);
  const Plan apart = plan_by(fears("chain"));
  EXPECT_EQ(apart.fuse.size(), 2U);
  EXPECT_TRUE(check_complete(apart, graph(), target()).ok());
  EXPECT_TRUE(plan_by(fears("chain")) == apart);
}

TEST(FewPlans, TheUsualOneStaysInDoubt) {
  const Plan usual = plan_by(prices());
  EXPECT_TRUE(plan_by(fears("conv")) == usual);                   // it says nothing of these
  EXPECT_TRUE(plan_by(fears("chain", -3)) == usual);              // chains are cheaper yet
  EXPECT_TRUE(plan_by(fears("chain", 3, kNoPlanLead)) == usual);  // no choice of it gained
  // It has learned from plans of one thread.
  EXPECT_EQ(plan_by(fears("chain"), open(2)), plan_by(prices(), open(2)));
  // Some of the plan is given.
  Plan partial = open();
  partial.order = {};
  partial.fuse = {usual.fuse[0]};
  EXPECT_EQ(plan_by(fears("chain"), partial), plan_by(prices(), partial));
}

// ---- Order --------------------------------------------------------------------------------------

// A model of plans by which a task takes the longer, the more bytes were used since what it reads
// was used last. Its members say so by these factors.
LearnedCost fears_distance(float first, float second) {
  const LearnedCost cost = prices();
  const size_t distance = offsetof(PlanFeatures, distance) / sizeof(float);
  PlanModel model = plan_model_by(target(), cost, distance, 1);
  for (const auto& [member, times] : {std::pair(0, first), {1, second}}) {
    PlanMember& one = model.members[static_cast<size_t>(member)];
    one.rounds[0].heard_in[0] = 1;
    one.output[0] = times;
  }
  return {cost, std::make_shared<const PlanModel>(model)};
}

// Each node is a kernel, so that orders differ.
PlannerOptions apart() {
  PlannerOptions options;
  options.heuristics = heuristics_without("groups,chains,image_chains").value();
  return options;
}

std::string order_by(const LearnedCost& cost) {
  const Plan plan = complete(branches(), open(), target(), cost, apart()).value();
  EXPECT_TRUE(check_complete(plan, branches(), target()).ok());
  std::string order;
  for (const std::string& step : plan.order)
    for (const Group& group : plan.fuse)
      if (group.kernel == step) order += group.nodes.back() + " ";
  return order;
}

constexpr std::string_view kGraphOrder = "a1 b1 a2 b2 a3 b3 y ",
                           kNearOrder = "a1 a2 a3 b1 b2 b3 y ";

TEST(FewPlans, TheModelOfPlansTakesAnOrder) {
  EXPECT_EQ(order_by(prices()), kGraphOrder);
  EXPECT_EQ(order_by(fears_distance(0.2F, 0.2F)), kNearOrder);
}

TEST(FewPlans, TheOrderOfTheGraphStaysInDoubt) {
  EXPECT_EQ(order_by(fears_distance(0, 0)), kGraphOrder);          // nothing gains
  EXPECT_EQ(order_by(fears_distance(-0.2F, -0.2F)), kGraphOrder);  // it would lose
  EXPECT_EQ(order_by(fears_distance(0.2F, -0.18F)), kGraphOrder);  // members disagree
}

// All but the order and the places is that of the usual plan.
TEST(FewPlans, AnotherOrderChangesNothingElse) {
  const Heuristics variants[] = {
      heuristics_without("groups,chains,image_chains,graph_order").value()};
  const std::vector<Plan> plans =
      few_plans(branches(), open(), target(), prices(), variants, apart()).value();
  ASSERT_EQ(plans.size(), 2U);
  Plan other = plans[1];
  EXPECT_NE(other.order, plans[0].order);
  other.order = plans[0].order;
  other.offset = plans[0].offset;
  EXPECT_EQ(other, plans[0]);
  // Where the order is given it stays.
  Plan given = open();
  given.order = plans[0].order;
  given.fuse = plans[0].fuse;
  EXPECT_EQ(few_plans(branches(), given, target(), prices(), variants, apart()).value().size(), 1U);
}

// Models with layouts, copies of weights, views and regions have such plans, too, if several steps
// can come next.
TEST(FewPlans, ModelsHaveAnotherOrder) {
  Heuristics other;
  other.graph_order = false;
  size_t differ = 0;
  for (const std::string_view model : {"squeezenet", "bert_base", "lstm", "gpt2"}) {
    const Graph of = prepare(build_zoo_model(model, {.size = ZooSize::tiny}).value()).value();
    const std::vector<Plan> plans = few_plans(of, open(), target(), prices(), {&other, 1}).value();
    ASSERT_EQ(plans.size(), has_other_order(of, plans[0]) ? 2U : 1U) << model;
    if (plans.size() < 2) continue;
    ++differ;
    EXPECT_TRUE(check_complete(plans[1], of, target()).ok()) << model;
    const auto without_places = [](Plan plan) {
      plan.order.clear(), plan.offset.clear();
      for (auto& [name, region] : plan.region) region.order.clear(), region.offset.clear();
      return plan;
    };
    EXPECT_EQ(without_places(plans[1]), without_places(plans[0])) << model;
  }
  EXPECT_GE(differ, 1U);
}

// Times of a log, say, beside a learned price: other prices than the model has learned by.
class Wrapped : public Cost {
 public:
  explicit Wrapped(const LearnedCost& cost) : cost_(cost) {}
  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return cost_.kernel(std::move(facts), threads);
  }
  double copy(double bytes) const override { return cost_.copy(bytes); }
  double command() const override { return cost_.command(); }
  const Cost* baseline() const override { return cost_.baseline(); }
  std::optional<double> sureness() const override { return cost_.sureness(); }
  const LearnedCost* learned() const override { return &cost_; }

 private:
  const LearnedCost& cost_;
};

TEST(FewPlans, TheModelIsNotAskedAboutOtherPrices) {
  const LearnedCost cost = fears("chain");
  ASSERT_FALSE(plan_by(cost) == plan_by(prices()));
  EXPECT_EQ(complete(graph(), open(), target(), Wrapped(cost)).value(), plan_by(prices()));
}

TEST(FewPlans, APlanThatCannotBeDescribedIsNoChoice) {
  const LearnedCost cost = fears("chain");
  const Plan usual = plan_by(prices()), apart = plan_by(cost);
  Plan broken = apart;
  broken.fuse.pop_back();
  broken.schedule.clear();
  ASSERT_FALSE(described_plan(graph(), broken, target(), cost).ok());
  const auto best = [&](const std::vector<Plan>& plans) {
    return best_of_these(graph(), plans, target(), cost, *cost.plans()).value();
  };
  EXPECT_EQ(best({usual, broken, apart}), apart);
  EXPECT_EQ(best({usual, broken}), usual);
  EXPECT_EQ(best({broken, apart}), broken);  // nothing is known to be faster than the first
}

TEST(FewPlans, NamesTheModelInTheVersion) {
  EXPECT_NE(fears("chain").version(), prices().version());
  EXPECT_NE(fears("chain").version(), fears("conv").version());
  EXPECT_EQ(fears("chain").version_of_prices(), prices().version());
  EXPECT_EQ(prices_hash(fears("chain")), prices_hash(prices()));
}

}  // namespace
}  // namespace hone::HONE_FILE
