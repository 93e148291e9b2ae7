#include "oracle/differential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/barrier.h"
#include "oracle/decision_counts.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/oracle/host_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr std::string_view kText = R"(case x86-64-v2 accurate
graph @main(%x: f32[3]) -> f32[3] {
  %y = exp %x : f32[3]
  return %y
}
---- plan
plan @main {
  threads = 1
  fuse @k0 = {%y}
}
---- inputs
graph @inputs() -> f32[3] {
  %0 = constant [1, 2, 0.5] : f32[3]
  return %0
}
)";

TEST(Differential, CasesAreReadBackAsTheyAreWritten) {
  const Result<DifferentialCase> one = parse_case(kText);
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_EQ(one->isa, Isa::v2);
  EXPECT_EQ(one->judge, Judge::accurate);
  EXPECT_EQ(one->plan.fuse[0].nodes[0], "y");
  EXPECT_EQ(one->inputs[0].real_at(2), 0.5);
  EXPECT_EQ(print(*one), kText);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const std::string text = print(random_case(seed, host(), Isa::avx512));
    const Result<DifferentialCase> again = parse_case(text);
    ASSERT_TRUE(again.ok()) << again.error().to_string() << text;
    EXPECT_EQ(print(*again), text);
  }
}

TEST(Differential, SaysWhatIsWrongWithACase) {
  const auto error = [](std::string_view from, std::string_view to) {
    std::string text(kText);
    text.replace(text.find(from), from.size(), to);
    const Result<DifferentialCase> one = parse_case(text, "a.case");
    return one.ok() ? "none" : one.error().to_string();
  };
  EXPECT_THAT(error("case x86-64-v2 accurate", ""), says("'case ISA JUDGE'"));
  EXPECT_THAT(error("x86-64-v2", "sparc"), says("'sparc' ... level"));
  EXPECT_THAT(error("accurate", "fair"), says("'fair' ... judge"));
  EXPECT_THAT(error("exp", "expo"), HasSubstr("a.case"));
  EXPECT_THAT(error("threads", "thread"), HasSubstr("thread"));
  EXPECT_NE(error("constant [1, 2, 0.5]", "constant [1, 2]"), "none");
  EXPECT_NE(error("return %0\n}\n", ""), "none");
}

// Compiled code multiplies padding as zeros, and the reference skips it: nothing can be said.
TEST(Differential, NaNThatMeetsPaddingIsUnstable) {
  const auto verdict = [](std::string_view kernel) {
    const std::string text = fmt::format(R"(case x86-64-v2 rounded
graph @main(%x: f32[1, 1, 4], %w: f32[1, 1, 3]) -> f32[1, 1, 6] {{
  %y = conv %x, %w {{pad_low = [2], pad_high = [2]}} : f32[1, 1, 6]
  return %y
}}
---- inputs
graph @inputs() -> (f32[1, 1, 4], f32[1, 1, 3]) {{
  %0 = constant [1, 2, 3, 4] : f32[1, 1, 4]
  %1 = constant {} : f32[1, 1, 3]
  return %0, %1
}}
)",
                                         kernel);
    const DifferentialOutcome outcome = run_case(parse_case(text).value(), host(), team());
    return outcome.verdict;
  };
  EXPECT_EQ(verdict("[1, 2, nan]"), Verdict::unstable);
  EXPECT_EQ(verdict("[1, 2, 3]"), Verdict::passed);
}

TEST(Differential, RefusesAPlanThatDoesNotFit) {
  std::string text(kText);
  text.replace(text.find("fuse @k0 = {%y}"), 15, "fuse @k0 = {%z}");
  const DifferentialOutcome outcome = run_case(parse_case(text).value(), host(), team());
  EXPECT_EQ(outcome.verdict, Verdict::refused);
  EXPECT_THAT(outcome.reason, HasSubstr("%z"));
}

TEST(Differential, CasesDifferInAllThatTheyHave) {
  int open_sizes = 0, without_plan = 0, accurate = 0, special = 0, on_v2 = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const DifferentialCase one = random_case(seed, host(), Isa::avx512);
    open_sizes += one.graph.is_static() ? 0 : 1;
    without_plan += one.plan == Plan() ? 1 : 0;
    accurate += one.judge == Judge::accurate ? 1 : 0;
    special += one.judge == Judge::special ? 1 : 0;
    on_v2 += one.isa == Isa::v2 ? 1 : 0;
  }
  EXPECT_GE(open_sizes, 5);
  EXPECT_GE(without_plan, 5);
  EXPECT_EQ(accurate, 50);
  EXPECT_EQ(special, 24);
  EXPECT_GE(on_v2, 15);
}

// Concats and slices in layouts that are not row-major, of graphs that have little else.
TEST(Differential, ViewsInLayoutsComputeWhatTheReferenceDoes) {
  int concats = 0, slices = 0;
  for (uint64_t seed = 15; seed < 1600; seed += 16) {
    const DifferentialCase one = random_case(seed, host(), Isa::avx512);
    const DifferentialOutcome outcome = run_case(one, host(), team());
    ASSERT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason << "\n"
                                              << print(one);
    const Graph graph = prepare(one.graph).value();
    const PlannedGraph planned = hone::planned(outcome.plan.value(), graph).value();
    for (NodeId n : planned.view().nodes()) {
      if (!planned.is_view(n)) continue;
      if (planned.layout[planned.view().result(n).index].is_row_major()) continue;
      ++(planned.view().opcode(n) == Opcode::concat ? concats : slices);
    }
  }
  fmt::print("views that are not row-major: {} concats, {} slices\n", concats, slices);
  EXPECT_GE(concats, 5);
  EXPECT_GE(slices, 5);
}

TEST(Differential, RandomGraphsUnderRandomPlansComputeWhatTheReferenceDoes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DifferentialCase one = random_case(seed, host(), Isa::avx512);
    const DifferentialOutcome outcome = run_case(one, host(), team());
    ASSERT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason << "\n"
                                              << print(one);
  }
}

TEST(Differential, DerivedGraphsComputeWhatTheReferenceDoes) {
  int again = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const DifferentialCase one = random_case(seed, host(), Isa::avx512, Derives::always);
    EXPECT_EQ(one.judge, Judge::rounded);
    EXPECT_TRUE(one.graph.is_static());
    for (NodeId n : one.graph.nodes()) again += is_barrier(one.graph.op(n)) ? 1 : 0;
    const DifferentialOutcome outcome = run_case(one, host(), team());
    ASSERT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason << "\n"
                                              << print(one);
  }
  EXPECT_GE(again, 5);
}

// Each heuristic is left out of the plans of some graphs, with all others at work.
TEST(Differential, PlansWithoutAHeuristicComputeWhatTheReferenceDoes) {
  uint64_t seed = 0, number = 0;
  for (const Heuristic& row : kHeuristics) {
    if (!tested::in_share(number++, 4)) continue;
    SCOPED_TRACE(row.name);
    for (int count = 0; count < 3; ++seed) {
      DifferentialCase one = random_case(seed, host(), Isa::avx512);
      const Target target = restricted(host(), one.isa);
      Heuristics heuristics;
      heuristics.*row.flag = false;
      const Graph graph = prepare(one.graph).value();
      one.plan =
          complete(graph, {}, target, AnalyticCost(target), {.heuristics = heuristics}).value();
      const Status good = check_complete(one.plan, graph, target);
      ASSERT_TRUE(good.ok()) << good.error().to_string() << print(one);
      const DifferentialOutcome outcome = run_case(one, host(), team());
      ASSERT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason << "\n"
                                                << print(one);
      ++count;
    }
  }
}

TEST(DecisionCounts, HaveARowForEachDecisionAndCountItsValues) {
  DecisionCounts counts(3);
  const auto times = [&](std::string_view decision, std::string_view value) -> int64_t {
    for (const DecisionCounts::Row& row : counts.rows())
      if (row.decision == decision && row.value == value) return row.times;
    return -1;
  };
  EXPECT_EQ(times("schedule.algorithm", "gemm"), 0);
  EXPECT_EQ(times("view", "no"), 0);
  EXPECT_EQ(times("threads", "3"), 0);
  EXPECT_EQ(times("threads", "4"), -1);
  for (std::string_view tile : {"none", "2", "5-8", "33 and more"})
    for (std::string_view field : {"schedule.lanes", "schedule.unroll", "schedule.block"})
      EXPECT_EQ(times(field, tile), 0) << field;
  const Plan plan = parse_plan(R"(plan @main {
    threads = 2
    fuse @k0 = {%a, %b, %c}
    view %v = no
    layout %a = [1, 0]
    layout %b = [0, 1/4, 1%4]
    schedule 0x0123456789abcdef = {algorithm = nest, order = [1, 0], threads = 1,
                                   lanes = [1:16], unroll = [0:3]}
    order = [@k0]
    offset %a = 64
    region %l.body {
      fuse @k0 = {%m}
      offset %m = 0
    }
  })")
                        .value();
  counts.add(plan);
  EXPECT_EQ(times("threads", "2"), 1);
  EXPECT_EQ(times("fuse", "3"), 1);
  EXPECT_EQ(times("fuse", "1"), 1);
  EXPECT_EQ(times("view", "no"), 1);
  EXPECT_EQ(times("layout", "permuted"), 1);
  EXPECT_EQ(times("layout", "blocked"), 1);
  EXPECT_EQ(times("schedule.algorithm", "nest"), 1);
  EXPECT_EQ(times("schedule.order", "permuted"), 1);
  EXPECT_EQ(times("schedule.threads", "1"), 1);
  EXPECT_EQ(times("schedule.lanes", "9-16"), 1);
  EXPECT_EQ(times("schedule.unroll", "3"), 1);
  EXPECT_EQ(times("schedule.row", "0"), 1);
  EXPECT_EQ(times("schedule.pack_lhs", "no"), 0);  // a nest packs nothing
  EXPECT_EQ(times("region", "planned"), 1);
  EXPECT_EQ(times("offset", "0"), 1);
  EXPECT_EQ(times("offset", "above 0"), 1);
  counts.add("view", "no", 5);
  EXPECT_EQ(times("view", "no"), 6);
  EXPECT_THAT(counts.to_string(), HasSubstr("schedule.algorithm  generic"));
}

}  // namespace
}  // namespace hone::HONE_FILE
