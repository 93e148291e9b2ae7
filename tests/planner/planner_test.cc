#include "planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "ir/text.h"
#include "plan/prepare.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

void expect_completed(const Graph& graph) {
  const Result<Plan> plan = complete(graph, {}, target());
  ASSERT_TRUE(plan.ok()) << plan.error().to_string() << print(graph);
  const Status good = check_complete(*plan, graph, target());
  EXPECT_TRUE(good.ok()) << good.error().to_string() << print(graph) << print(*plan);
  EXPECT_EQ(parse_plan(print(*plan)).value(), *plan);
  EXPECT_EQ(complete(graph, *plan, target()).value(), *plan);
}

TEST(Planner, CompletesPlansOfRandomGraphs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_completed(prepare(random_graph({.seed = seed, .symbolic = seed % 4 == 0})).value());
  }
}

TEST(Planner, CompletesPlansOfTheZoo) {
  for (const ZooEntry& model : zoo_entries()) {
    SCOPED_TRACE(model.name);
    expect_completed(prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value());
  }
}

}  // namespace
}  // namespace hone
