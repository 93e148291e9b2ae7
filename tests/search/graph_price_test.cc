// Prices of whole graphs, which searches over rewrites compare.

#include "search/graph_price.h"

#include <gtest/gtest.h>

#include "cost/learned_cost.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/cost/plan_model_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

// A model of whole plans takes plans that are dearer by the sum, and the sum is what searches see.
TEST(GraphPrice, IsThatOfThePlanByTheSumOfPrices) {
  const Target target = parse_target(kSampleTarget, "t").value();
  const Graph graph = parse_graph(R"(graph @g(%x: f32[64, 96], %v: f32[96, 96], %w: f32[96, 64])
      -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = max %h, 0
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                          .value();
  KernelModel kernels = random_model(target, 1);
  kernels.seen.clear();  // the analytic price counts
  const LearnedCost prices(target, std::make_shared<const KernelModel>(kernels),
                           std::make_shared<const AnalyticCost>(target));
  PlanModel fears = plan_model_by(target, prices, kind_feature("chain"), 3);
  const LearnedCost with_plans(prices, std::make_shared<const PlanModel>(fears));
  const Graph ready = prepare(graph).value();
  Plan open;
  open.threads = 1;
  ASSERT_NE(complete(ready, open, target, with_plans).value(),
            complete(ready, open, target, prices).value());
  EXPECT_EQ(GraphPrice(target, with_plans, {.threads = 1}).exact(graph).value(),
            GraphPrice(target, prices, {.threads = 1}).exact(graph).value());
}

}  // namespace
}  // namespace hone::HONE_FILE
