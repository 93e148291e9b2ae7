#include "planner/heuristics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/functional.h"
#include "planner/groups.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/base/share_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

Target target() { return parse_target(kSampleTarget, "t").value(); }

TEST(Heuristics, AreLeftOutByName) {
  Heuristics expected;
  expected.chains = expected.gemm = false;
  EXPECT_EQ(heuristics_without("gemm, chains").value(), expected);
  EXPECT_EQ(left_out(expected), "chains,gemm");
  EXPECT_EQ(heuristics_without(left_out(expected)).value(), expected);
  EXPECT_EQ(left_out({}), "");
}

TEST(Heuristics, RefuseUnknownNamesWithTheListOfAll) {
  for (std::string_view names : {"speed", "gemm,", "", "gemm,speed", "gemm chains"}) {
    const Error error = heuristics_without(names).error();
    EXPECT_EQ(error.code(), ErrorCode::usage) << names;
    EXPECT_THAT(error.to_string(), HasSubstr("there is no heuristic '"));
    for (const Heuristic& row : kHeuristics) EXPECT_THAT(error.hint(), HasSubstr(row.name));
  }
}

TEST(Heuristics, PlansWithoutOneAreComplete) {
  uint64_t seed = 0, number = 0;
  const auto expect_complete = [](const Graph& graph, const Heuristics& heuristics) {
    const Result<Plan> plan =
        complete(graph, {}, target(), AnalyticCost(target()), {.heuristics = heuristics});
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    const Status good = check_complete(*plan, graph, target());
    EXPECT_TRUE(good.ok()) << good.error().to_string() << print(*plan);
  };
  for (const Heuristic& row : kHeuristics) {
    SCOPED_TRACE(row.name);
    Heuristics heuristics;
    heuristics.*row.flag = false;
    if (!tested::in_share(number++, 4)) continue;
    for (int i = 0; i < 5; ++i)
      expect_complete(prepare(random_graph({.seed = seed++})).value(), heuristics);
    for (const char* model : {"squeezenet", "bert_base", "lstm"})
      expect_complete(prepare(build_zoo_model(model, {.size = ZooSize::tiny}).value()).value(),
                      heuristics);
  }
  Heuristics none;
  for (const Heuristic& row : kHeuristics) none.*row.flag = false;
  for (int i = 0; i < 20; ++i)
    expect_complete(prepare(random_graph({.seed = seed++})).value(), none);
}

// ---- Time ---------------------------------------------------------------------------------------

// The choice of fuse() for each node, where it decides all.
double counted_per_node(const Graph& graph) {
  FusionFreedom freedom;
  freedom.is_free.assign(graph.node_count(), true);
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::parameter) freedom.is_free[n.index] = false;
  freedom.may_be_view.assign(graph.node_count(), true);
  freedom.has_memory.assign(graph.value_count(), false);
  const Fusion fusion = fuse(graph, Users(graph), freedom, {});
  return static_cast<double>(fusion.counted) / static_cast<double>(graph.node_count());
}

TEST(Fusion, TakesTimeInProportionToAChain) {
  for (int count : {1000, 10000}) {
    Builder b;
    const Value x = b.parameter("x", DType::f32, {64});
    Value v = x;
    for (int i = 0; i < count; ++i) v = b.op(Opcode::tanh, {v}) + x;
    EXPECT_LT(counted_per_node(b.finish({v}).value()), 4);
  }
}

// Nodes are computed twice more at each step, so that groups are full of code long before nodes.
TEST(Fusion, TakesTimeInProportionWhereGroupsHaveTooMuchCode) {
  for (int count : {1000, 10000}) {
    Builder b;
    Value v = b.parameter("x", DType::f32, {64});
    for (int i = 0; i < count; ++i) v = v + b.op(Opcode::reverse, {v}, {{"axes", Ints{0}}});
    EXPECT_LT(counted_per_node(b.finish({v}).value()), 16);
  }
}

TEST(Fusion, TakesTimeInProportionToAFanOut) {
  for (int count : {1000, 10000}) {
    Builder b;
    const Value x = b.parameter("x", DType::f32, {64});
    std::vector<Value> results;
    for (int i = 0; i < count; ++i)
      results.push_back(
          b.op(Opcode::exp, {x + b.parameter(fmt::format("p{}", i), DType::f32, {64})}));
    EXPECT_LT(counted_per_node(b.finish(results).value()), 4);
  }
}

// Trees of 100 leaves, each of another shape.
TEST(Fusion, TakesTimeInProportionToAForest) {
  constexpr Opcode kOps[] = {Opcode::add, Opcode::mul, Opcode::max};
  for (int trees : {10, 100}) {
    Builder b;
    Rng rng(1);
    std::vector<Value> roots;
    for (int tree = 0; tree < trees; ++tree) {
      std::vector<Value> open;
      for (int i = 0; i < 100; ++i)
        open.push_back(b.parameter(fmt::format("p{}_{}", tree, i), DType::f32, {8, 8}));
      while (open.size() > 1) {
        rng.shuffle(open);
        const Value last = open.back();
        open.pop_back();
        open.back() = b.op(rng.pick(kOps), {open.back(), last});
        if (rng.chance(0.2))
          open.back() = b.op(Opcode::transpose, {open.back()}, {{"permutation", Ints{1, 0}}});
      }
      roots.push_back(open[0]);
    }
    EXPECT_LT(counted_per_node(b.finish(roots).value()), 4);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
