#include "plan/random_plan.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/prepare.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

void expect_legal(const Graph& graph, uint64_t seed) {
  const Plan plan = random_plan(graph, target(), seed);
  const Status good = check_complete(plan, graph, target());
  ASSERT_TRUE(good.ok()) << good.error().to_string() << print(graph) << print(plan);
  EXPECT_EQ(parse_plan(print(plan)).value(), plan);
  EXPECT_EQ(random_plan(graph, target(), seed), plan);
}

TEST(RandomPlan, IsLegalForRandomGraphs) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed, .symbolic = seed % 4 == 0})).value();
    for (uint64_t variant = 0; variant < 3; ++variant) expect_legal(graph, 3 * seed + variant);
  }
}

TEST(RandomPlan, IsLegalForTheZoo) {
  for (const ZooEntry& model : zoo_entries()) {
    SCOPED_TRACE(model.name);
    expect_legal(prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value(), 1);
  }
}

}  // namespace
}  // namespace hone
