#include "report/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/native_engine.h"
#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kMlp = R"(
graph @g(%x: f32[16, 32], %w: f32[32, 64]) -> f32[16, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})";

Target target() {
  Target target;
  target.name = "t";
  target.caches = {{.bytes = 32 << 10, .cores = 1, .bytes_per_second = 1e11}};
  target.memory_bytes = int64_t{1} << 30;
  target.memory_one_core = target.memory_all_cores = 1e10;
  target.peak(DType::f32) = 1e9;
  target.peak(DType::f64) = 5e8;
  return target;
}

TEST(Profile, TellsTimeShareAndRateOfKernels) {
  const Graph graph = prepare(parse_graph(kMlp).value()).value();
  const Plan plan = complete(graph, {}, target()).value();
  ASSERT_EQ(plan.fuse.size(), 1u);
  const std::string& command = plan.fuse[0].kernel;
  // 2 * 16 * 32 * 64 + 16 * 64 operations in a quarter of a millisecond. Of two runs the fastest of
  // each command counts; of a kernel all its commands.
  const Profile times = {{"first", "", 2, 1e-3, 5e-5},
                         {command, "dot_tanh", 2, 5e-3, 2e-4},
                         {"again", "dot_tanh", 2, 7e-4, 3e-4}};
  const std::string text =
      profile_table(times, 2, graph, plan, target(), AnalyticCost(target()), 10).value();
  EXPECT_THAT(text, ContainsRegex("dot_tanh +" + command +
                                  " +2 +f32.16, 64. .* 0x[0-9a-f]+ +500 us +90.9% +[0-9.]+ us +0.3 "
                                  "+26.6%\n"));
  EXPECT_THAT(text, ContainsRegex("\n.copies. +first +1 +50.0 us +9.1%\n"));
  EXPECT_THAT(text, ContainsRegex("\nall +550 us\n"));
  EXPECT_LT(text.find("dot_tanh"), text.find("(copies)"));
}

// A table made of a profile has the measured times as prices.
TEST(Profile, OfATableCostShowsPricesThatAreTheTimes) {
  const Graph graph = prepare(parse_graph(kMlp).value()).value();
  const Plan plan = complete(graph, {}, target()).value();
  const std::string& command = plan.fuse[0].kernel;
  const Profile times = {{command, "dot_tanh", 4, 5e-3, 2e-4}};
  TableCost table(std::make_shared<AnalyticCost>(target()));
  ASSERT_TRUE(table.add(graph, plan, times).ok());
  EXPECT_EQ(table.size(), 1u);
  const std::string text = profile_table(times, 2, graph, plan, target(), table, 10).value();
  EXPECT_THAT(text, ContainsRegex("dot_tanh .* 400 us +100.0% +400 us "));
}

TEST(Profile, SumsUpWhatItLeavesOut) {
  const Graph graph = prepare(parse_graph(kMlp).value()).value();
  const Plan plan = complete(graph, {}, target()).value();
  const Profile times = {
      {"a", "x", 1, 1e-3, 1e-3}, {"b", "y", 1, 3e-3, 3e-3}, {"c", "z", 1, 4e-3, 4e-3}};
  const std::string text =
      profile_table(times, 1, graph, plan, target(), AnalyticCost(target()), 1).value();
  EXPECT_THAT(text, ContainsRegex("z +c +1 +4.00 ms +50.0%\n2 others +4.00 ms +50.0%\n"));
  EXPECT_THAT(text, Not(HasSubstr("\ny ")));
}

// Under a plan for all sizes, a kernel is told as it is for those that ran.
TEST(Profile, OfOpenSizesIsOfThoseThatRan) {
  const Graph open = prepare(parse_graph("graph @g(%x: f32[N, 64]) -> f32[N, 64] where N in 1..512 "
                                         "{ %y = exp %x return %y }")
                                 .value())
                         .value();
  const Plan plan = complete(open, {}, target()).value();
  const Profile times = {{plan.fuse[0].kernel, "exp", 1, 1e-3, 1e-3}};
  const auto text = [&](int64_t rows) {
    return profile_table(times, 1, open, plan, target(), AnalyticCost(target()), 10,
                         {{"N", Dim(rows)}})
        .value();
  };
  EXPECT_THAT(text(500), ContainsRegex("exp .* f32.500, 64. .*%"));
  EXPECT_NE(text(500).substr(text(500).find("100.0%")), text(50).substr(text(50).find("100.0%")));
}

TEST(Profile, OfSeveralGraphsAndSizesTellsEach) {
  const auto graph = [](std::string_view name) {
    return std::make_shared<const Graph>(
        parse_graph(fmt::format("graph @{}(%x: f32[N, 64]) -> f32[N, 64] where N in 1..512 {{ "
                                "%y = exp %x return %y }}",
                                name))
            .value());
  };
  const GraphRef first = graph("first"), second = graph("second");
  NativeEngine engine(host_target().value());
  engine.keep_code();
  const auto run = [&](const GraphRef& graph, int64_t rows, int times) {
    const Tensor x = Tensor::zeros(Type::get(DType::f32, {rows, 64}));
    for (int i = 0; i < times; ++i) ASSERT_TRUE(engine.run(graph, {&x, 1}).ok());
  };
  run(second, 100, 1);
  EXPECT_THAT(engine.profiles(), testing::IsEmpty());
  engine.start_profile();
  run(first, 100, 6);
  EXPECT_THAT(profile_text(engine, 3, host_target().value(), 10).value(),
              testing::StartsWith("kernel "));
  run(first, 500, 3);  // by code for all sizes
  run(second, 200, 3);
  const std::string text = profile_text(engine, 3, host_target().value(), 10).value();
  EXPECT_THAT(text, testing::StartsWith("segment "));
  EXPECT_THAT(text, ContainsRegex("\nfirst +N = 100 +2 +[0-9.]+ [a-z]+ +[0-9.]+%\n"));
  EXPECT_THAT(text, ContainsRegex("\nfirst +N = 500 +1 "));
  EXPECT_THAT(text, ContainsRegex("\nsecond +N = 200 +1 "));
  EXPECT_THAT(text, Not(HasSubstr("second  N = 100")));
  EXPECT_THAT(text, ContainsRegex("\n# segment first, N = 500\nkernel .*\nexp .* f32.500, 64. "
                                  ".* 0x[0-9a-f]+ .*[0-9]+ [mun]s\n"));
}

}  // namespace
}  // namespace hone
