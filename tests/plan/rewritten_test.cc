#include "plan/rewritten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/assign.h"
#include "rewrite/prepare.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

// The body of the loop undoes a transpose, too.
Graph sample() {
  return parse_graph(R"(graph @g(%x: f32[6, 4], %q: f32[3]) {
  %t = transpose %x {permutation = [1, 0]}
  %u = transpose %t {permutation = [1, 0]}
  %loop = scan %u, %q {carried = 1} body (%s: f32[6, 4], %f: f32[]) {
    %a = transpose %s {permutation = [1, 0]}
    %b = transpose %a {permutation = [1, 0]}
    %c = exp %b
    return %c
  }
  return %loop
})")
      .value();
}

constexpr std::string_view kPlan = R"(plan @g {
  rewrite 1 = @transpose_twice(%u)
  region %loop.body {
    rewrite 1 = @transpose_twice(%b)
  }
}
)";

Plan plan() { return parse_plan(kPlan, "p").value(); }

TEST(Rewritten, CoversRegions) {
  const Graph made = rewritten(sample(), plan()).value();
  ASSERT_TRUE(verify(made).ok());
  EXPECT_THAT(print(made), testing::Not(HasSubstr("transpose")));
  Plan outer = plan();
  outer.region.clear();
  EXPECT_THAT(print(rewritten(sample(), outer).value()), HasSubstr("transpose %s"));
  EXPECT_EQ(print(rewritten(sample(), Plan()).value()), print(sample()));
}

TEST(Rewritten, ErrorsNameTheEntry) {
  Plan wrong = plan();
  wrong.region["loop.body"].rewrite[0].results = {"c"};
  EXPECT_THAT(rewritten(sample(), wrong).error().to_string(),
              HasSubstr("the rule 'transpose_twice' does not match at %c (region %loop.body, "
                        "rewrite 1)"));
}

TEST(Rewritten, PartsOfAPlan) {
  Plan whole = plan();
  EXPECT_TRUE(has_rewrites(whole));
  EXPECT_EQ(only_rewrites(whole), whole);
  whole.threads = 2;
  whole.region["loop.body"].order = {"k0"};
  EXPECT_EQ(only_rewrites(whole), plan());
  Plan none = without_rewrites(whole);
  EXPECT_FALSE(has_rewrites(none));
  EXPECT_EQ(none.threads, 2);
  set_rewrites(none, plan());
  EXPECT_EQ(none, whole);
  const std::vector<AppliedRule> applied = applied_rules(whole);
  ASSERT_EQ(applied.size(), 1u);
  EXPECT_EQ(applied[0].rule, "transpose_twice");
  EXPECT_EQ(applied[0].times, 2u);
}

// A hash is that of the rewritten graph.
TEST(Rewritten, PlansAreForTheGraphThatTheyMake) {
  const Graph graph = sample();
  const Graph other = parse_graph("graph @other(%x: f32[4]) { %y = exp %x return %y }").value();
  const Graph made = prepare(rewritten(graph, plan()).value()).value();
  Plan with_hash = plan();
  with_hash.graph_hash = hash_without_weights(made);
  const std::vector<PlacedPlan> plans = parse_plans(print(with_hash), "p").value();
  const Graph* const one[] = {&graph};
  const Graph* const two[] = {&other, &graph};
  EXPECT_EQ(assign_plans(plans, one).value()[0], &plans[0]);
  EXPECT_EQ(assign_plans(plans, two).value()[1], &plans[0]);
  const Graph* const wrong[] = {&other};
  EXPECT_THAT(assign_plans(plans, wrong).error().to_string(),
              HasSubstr("the rule 'transpose_twice' does not match at %u (p:2, rewrite 1)"));
}

}  // namespace
}  // namespace hone::HONE_FILE
