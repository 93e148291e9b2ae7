// The order of steps where several could come next.

#include "planner/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

Graph graph_of(std::string_view text) { return prepare(parse_graph(text).value()).value(); }

// Two exchanges, each of what another node makes. The second one waits for the first node.
Graph exchanges() {
  return graph_of(R"(graph @g(%x: f32[8], %y: f32[8]) -> (f32[8], f32[8]) {
  %e = exp %x
  %f = tanh %y
  %r1 = all_reduce %f {kind = sum, group_size = 2}
  %r2 = all_reduce %e {kind = sum, group_size = 2}
  return %r1, %r2
})");
}

// The results of the steps of a plan without `graph_order`.
std::vector<std::string> newest_of(const Graph& graph, const Plan& partial = {}) {
  PlannerOptions options;
  options.heuristics.graph_order = false;
  const Target target = parse_target(kSampleTarget, "t").value();
  const Plan plan = complete(graph, partial, target, AnalyticCost(target), options).value();
  EXPECT_TRUE(check_complete(plan, graph, target).ok());
  std::vector<std::string> order = plan.order;
  for (std::string& step : order)
    for (const Group& group : plan.fuse)
      if (group.kernel == step) step = group.nodes.back();
  return order;
}

TEST(Order, IsSoonAfterWhatAStepReads) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[8], %w: f32[8, 8]) -> (f32[8], f32[8]) {
  %a = dot %x, %w {lhs_contract = [0], rhs_contract = [0]}
  %b = dot %x, %w {lhs_contract = [0], rhs_contract = [1]}
  %c = dot %a, %w {lhs_contract = [0], rhs_contract = [0]}
  %d = dot %b, %w {lhs_contract = [0], rhs_contract = [1]}
  return %c, %d
})");
  EXPECT_TRUE(has_other_order(graph, Plan()));
  const Plan apart =
      parse_plan("plan @g { fuse @a = {%a} fuse @b = {%b} fuse @c = {%c} fuse @d = {%d} }").value();
  EXPECT_THAT(newest_of(graph, apart), ElementsAre("a", "c", "b", "d"));
}

TEST(Order, OfOneChainIsTheOnlyOne) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[8]) -> f32[8] {
  %a = exp %x
  %b = tanh %a
  return %b
})");
  EXPECT_FALSE(has_other_order(graph, Plan()));
}

TEST(Order, OfExchangesIsThatOfTheModel) {
  EXPECT_THAT(newest_of(exchanges()), ElementsAre("e", "f", "r1", "r2"));
}

// A plan may have another one.
TEST(Order, OfExchangesIsThatOfThePlanThatNamesThem) {
  EXPECT_THAT(newest_of(exchanges(), parse_plan("plan @g { order = [%r2, %r1] }").value()),
              ElementsAre("e", "r2", "f", "r1"));
  // So it is by a step between them, too.
  EXPECT_THAT(
      newest_of(exchanges(), parse_plan("plan @g { fuse @f = {%f} order = [%r2, @f] }").value()),
      ElementsAre("e", "r2", "f", "r1"));
}

}  // namespace
}  // namespace hone::HONE_FILE
