#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "ir/text.h"
#include "plan/rewritten.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

Graph sample() {
  return parse_graph(R"(graph @g(%x: f32[6, 4]) {
  %t = transpose %x {permutation = [1, 0]}
  %u = transpose %t {permutation = [1, 0]}
  %y = exp %u
  return %y
})")
      .value();
}
Plan rewrites(std::string_view at = "u") {
  Plan plan;
  plan.graph = "g";
  plan.rewrite = {{"transpose_twice", {std::string(at)}}};
  return plan;
}

TEST(CompileRewritten, KeepsTheRewritesInThePlan) {
  Compilation once(sample(), target(), {.plan = rewrites()});
  const Plan plan = **once.plan();
  EXPECT_EQ(plan.rewrite, rewrites().rewrite);
  EXPECT_EQ((*once.graph())->node_count(), 2u);
  Compilation again(sample(), target(), {.plan = plan});
  EXPECT_EQ(**again.plan(), plan);
  EXPECT_TRUE(again.program().ok());
}

TEST(CompileRewritten, AsksForRewritesWhereThePlanIsOpen) {
  int asked = 0;
  CompileOptions options;
  options.plan.threads = 1;
  options.find_rewrites = [&](const Graph& given, const Target&, int64_t threads) -> Result<Plan> {
    ++asked;
    EXPECT_EQ(given.node_count(), 4u);
    EXPECT_EQ(threads, 1);
    return rewrites();
  };
  Compilation open(sample(), target(), options);
  EXPECT_EQ((*open.plan())->rewrite.size(), 1u);
  EXPECT_EQ(asked, 1);
  options.plan.view["t"] = false;
  Compilation said(sample(), target(), options);
  EXPECT_EQ((*said.graph())->node_count(), 4u);
  EXPECT_EQ(asked, 1);
}

TEST(CompileRewritten, TakesThePlanThatIsKnownWithItsRewrites) {
  CompileOptions options;
  options.plan.threads = 1;
  Compilation planned(sample(), target(), {.plan = rewrites()});
  Plan best = **planned.plan();
  options.best_plan = [&](const Graph& graph, const Target&, int64_t) -> std::optional<Plan> {
    EXPECT_EQ(graph.node_count(), 4u);  // as it is known, before it is rewritten
    return best;
  };
  Compilation known(sample(), target(), options);
  EXPECT_EQ(**known.plan(), best);
  EXPECT_TRUE(known.program().ok());
  best.rewrite[0].rule = "no_more";
  Compilation unknown(sample(), target(), options);
  EXPECT_TRUE((*unknown.plan())->rewrite.empty());
}

TEST(CompileRewritten, RefusesOrDropsWhatDoesNotMatch) {
  Compilation refused(sample(), target(), {.plan = rewrites("y")});
  EXPECT_THAT(refused.graph().error().to_string(), HasSubstr("does not match at %y (rewrite 1)"));
  std::string told;
  CompileOptions options = {.plan = rewrites("y"), .drops_unfit = true};
  options.dropped = [&](std::string_view line) { told += line; };
  Compilation lenient(sample(), target(), options);
  EXPECT_TRUE((*lenient.plan())->rewrite.empty());
  EXPECT_THAT(told, HasSubstr("dropped all rewrites"));
}

}  // namespace
}  // namespace hone::HONE_FILE
