#include "planner/memory.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

TEST(Memory, TheBoundHoldsWhereverValuesLie) {
  const Graph graph = prepare(parse_graph(R"(
graph @g(%x: f32[16, 16]) -> f32[16, 16] {
  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
  %b = dot %a, %x {lhs_contract = [1], rhs_contract = [0]}
  %c = dot %b, %x {lhs_contract = [1], rhs_contract = [0]}
  return %c
})")
                                  .value())
                          .value();
  const Target target = parse_target(kSampleTarget, "t").value();
  // Each by itself, so that two values are in use at once.
  const Plan given = parse_plan("plan @g { fuse @a = {%a} fuse @b = {%b} fuse @c = {%c} }").value();
  Plan plan = complete(graph, given, target).value();
  MemoryBounds memory = memory_of(graph, plan).value().value();
  EXPECT_EQ(memory.height, 2048);
  EXPECT_EQ(memory.bound, 2048);
  plan.offset["b"] = 8192;
  ASSERT_TRUE(check_complete(plan, graph, target).ok());
  memory = memory_of(graph, plan).value().value();
  EXPECT_EQ(memory.height, 8192 + 1024);
  EXPECT_EQ(memory.bound, 2048);
}

TEST(Memory, NothingIsSaidOfOpenSizes) {
  const Graph graph =
      prepare(parse_graph("graph @g(%x: f32[N]) -> f32[N] where N in 1..8 { return %x }").value())
          .value();
  EXPECT_FALSE(memory_of(graph, Plan()).value());
}

}  // namespace
}  // namespace hone::HONE_FILE
