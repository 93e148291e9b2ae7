#include "rules/known_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "rules/rewrites.h"
#include "rules/rule_files.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

const Rule& rule_named(std::string_view name) {
  static const std::vector<Rule> rules = default_rules().value();
  return *std::ranges::find(rules, name, &Rule::name);
}

// The decades that the first match in a graph of this body takes; -1: none will do.
int32_t range_of(std::string_view rule, std::string_view text, int32_t decades = 0) {
  const Graph graph = rewritable(parse_graph(text).value()).value();
  const RuleMatcher matcher(rule_named(rule));
  std::vector<RuleMatch> matches = matcher.all(graph);
  if (matches.empty()) return -2;
  const Ranges ranges(decades);
  return KnownRanges(graph, ranges).suffice(matcher.rule(), matches[0]) ? matches[0].range : -1;
}

constexpr std::string_view kQuotients = R"(graph @f(%x: f32[4], %y: f32[4], %z: f32[4]) -> f32[4] {
  %a = div %x, %y
  %b = div %a, %z
  return %b
})";

TEST(KnownRanges, AreOfConstants) {
  EXPECT_EQ(range_of("quotients", kQuotients), -1);
  EXPECT_EQ(range_of("quotients", R"(graph @f(%x: f32[4]) -> f32[4] {
  %y = constant [1e15, 2, 3, 4] : f32[4]
  %z = constant [1e10, 1, 1, 1] : f32[4]
  %a = div %x, %y
  %b = div %a, %z
  return %b
})"),
            0);
  EXPECT_EQ(range_of("quotients", R"(graph @f(%x: f32[4]) -> f32[4] {
  %y = constant [1e25, 2, 3, 4] : f32[4]
  %z = constant [1e15, 1, 1, 1] : f32[4]
  %a = div %x, %y
  %b = div %a, %z
  return %b
})"),
            -1);
}

TEST(KnownRanges, AreWhatIsAssumedOfInputs) {
  EXPECT_EQ(range_of("quotients", kQuotients, 10), 10);
  EXPECT_EQ(range_of("quotients", kQuotients, 20), -1);
  EXPECT_EQ(
      range_of("rows_of_add", R"(graph @f(%x: f32[1, 4, 2], %y: f32[1, 4, 2]) -> f32[1, 2, 2] {
  %s = add %x, %y
  %r = slice %s {start = [0, 1, 0], limit = [1, 3, 2]}
  return %r
})",
               10),
      0);  // nothing is needed
}

// tanh is at most 1, so sums of it do not overflow; it may be small, so products may vanish.
TEST(KnownRanges, AreOfBoundedOps) {
  EXPECT_EQ(range_of("mul_over_add", R"(graph @f(%x: f32[4], %y: f32[4], %z: f32[4]) -> f32[4] {
  %s = tanh %x
  %t = erf %y
  %a = mul %s, %z
  %b = mul %t, %z
  %c = add %a, %b
  return %c
})"),
            0);
  EXPECT_EQ(range_of("quotients", R"(graph @f(%x: f32[4], %y: f32[4], %z: f32[4]) -> f32[4] {
  %s = tanh %y
  %t = tanh %z
  %a = div %x, %s
  %b = div %a, %t
  return %b
})"),
            -1);
}

TEST(KnownRanges, AreOfTheInputsOfReplayedRewrites) {
  const Graph graph = rewritable(parse_graph(kQuotients).value()).value();
  Rewrite rewrite{.rule = "quotients", .results = {"b"}, .range = 10};
  EXPECT_TRUE(replay(graph, {&rewrite, 1}, default_rules().value()).ok());
  rewrite.range = 0;
  const auto refused = replay(graph, {&rewrite, 1}, default_rules().value());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), says("'quotients' ... %b"));
}

}  // namespace
}  // namespace hone::HONE_FILE
