#include "report/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/prepare.h"
#include "planner/planner.h"

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
  const std::string text = profile_table(times, 2, graph, plan, target(), 10).value();
  EXPECT_THAT(text, ContainsRegex("dot_tanh +" + command +
                                  " +2 +f32.16, 64. .* 0x[0-9a-f]+ +500 us +90.9% +[0-9.]+ us +0.3 "
                                  "+26.6%\n"));
  EXPECT_THAT(text, ContainsRegex("\n.copies. +first +1 +50.0 us +9.1%\n"));
  EXPECT_THAT(text, ContainsRegex("\nall +550 us\n"));
  EXPECT_LT(text.find("dot_tanh"), text.find("(copies)"));
}

TEST(Profile, SumsUpWhatItLeavesOut) {
  const Graph graph = prepare(parse_graph(kMlp).value()).value();
  const Plan plan = complete(graph, {}, target()).value();
  const Profile times = {
      {"a", "x", 1, 1e-3, 1e-3}, {"b", "y", 1, 3e-3, 3e-3}, {"c", "z", 1, 4e-3, 4e-3}};
  const std::string text = profile_table(times, 1, graph, plan, target(), 1).value();
  EXPECT_THAT(text, ContainsRegex("z +c +1 +4.00 ms +50.0%\n2 others +4.00 ms +50.0%\n"));
  EXPECT_THAT(text, Not(HasSubstr("\ny ")));
}

}  // namespace
}  // namespace hone
