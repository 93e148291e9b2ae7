#include "rules/rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/text.h"
#include "rules/rule_files.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rules = default_rules().value();
  return rules;
}
const Rule& rule(std::string_view name) { return *std::ranges::find(rules(), name, &Rule::name); }

Graph sample() {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[8, 4], %v: f32[4, 3], %w: f32[4, 5]) {
  %t = transpose %x {permutation = [1, 0]}
  %u = transpose %t {permutation = [1, 0]}
  %a = dot %u, %v {lhs_contract = [1], rhs_contract = [0]}
  %b = dot %u, %w {lhs_contract = [1], rhs_contract = [0]}
  return %a, %b
})")
                          .value();
  return rewritable(graph).value();
}

std::string error(std::vector<Rewrite> rewrites) {
  const Result<Graph> graph = replay(sample(), rewrites, rules());
  return graph.ok() ? "" : graph.error().to_string();
}

TEST(Rewrites, AreCarriedOutInTheirOrder) {
  const std::vector<Rewrite> two = {{"transpose_twice", {"u"}}, {"dots_of_one_lhs", {"a", "b"}}};
  const Graph made = replay(sample(), two, rules()).value();
  ASSERT_TRUE(verify(made).ok());
  EXPECT_THAT(print(made), HasSubstr("concat"));
  EXPECT_THAT(print(made), testing::Not(HasSubstr("transpose")));
  EXPECT_EQ(made.name(made.outputs()[0]), "a");
  EXPECT_EQ(print(replay(sample(), two, rules()).value()), print(made));
}

// Each match of each rule, one after another on what the one before has made.
TEST(Rewrites, AreFoundAgainByWhatTheyAreCalled) {
  Graph graph = sample();
  std::vector<Rewrite> all;
  for (int step = 0; step < 4; ++step)
    for (const Rule& one : rules()) {
      const RuleMatcher matcher(one);
      for (const RuleMatch& match : matcher.all(graph, 8)) {
        const Rewrite said = rewrite_of(matcher, graph, match);
        EXPECT_EQ(find_rewrite(matcher, graph, said).value().values, match.values) << one.name;
      }
      const std::vector<RuleMatch> matches = matcher.all(graph, 1);
      if (matches.empty() || all.size() == 6) continue;
      all.push_back(rewrite_of(matcher, graph, matches[0]));
      graph = rewrite(one, graph, matches[0]).value();
    }
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(print(replay(sample(), all, rules()).value()), print(graph));
}

// Both products are sums of one node that commutes.
TEST(Rewrites, TellMatchesWithTheSameResultsApart) {
  const Graph graph = rewritable(parse_graph(R"(graph @g(%x: f32[4], %y: f32[4]) {
  %a = mul %x, %x
  %b = mul %y, %x
  %c = add %a, %b
  return %c
})")
                                     .value())
                          .value();
  const RuleMatcher matcher(rule("mul_over_add"));
  const std::vector<RuleMatch> matches = matcher.all(graph);
  std::set<int64_t> numbers;
  for (const RuleMatch& match : matches) {
    const Rewrite said = rewrite_of(matcher, graph, match);
    numbers.insert(said.match);
    EXPECT_EQ(find_rewrite(matcher, graph, said).value().values, match.values);
  }
  EXPECT_GT(numbers.size(), 1u);
  const int32_t behind = static_cast<int32_t>(matches.size()) + 1;
  EXPECT_FALSE(find_rewrite(matcher, graph, {"mul_over_add", {"c"}, behind}).ok());
}

TEST(Rewrites, RefuseByName) {
  EXPECT_THAT(error({{"transpose_twise", {"u"}}}),
              HasSubstr("there is no rule 'transpose_twise' (rewrite 1)\nhint: did you mean "
                        "'transpose_twice'?"));
  EXPECT_THAT(error({{"transpose_twice", {"u"}}, {"transpose_twice", {"a"}}}),
              HasSubstr("the rule 'transpose_twice' does not match at %a (rewrite 2)"));
  EXPECT_THAT(error({{"dots_of_one_lhs", {"a"}}}), HasSubstr("does not match at %a (rewrite 1)"));
  EXPECT_THAT(error({{"transpose_twice", {"u"}, 7}}), HasSubstr("does not match at %u"));
}

}  // namespace
}  // namespace hone::HONE_FILE
