#include <gtest/gtest.h>

#include "ir/reference/evaluate.h"
#include "rules/match.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

constexpr std::string_view kDots =
    R"(rule @dots_of_one_lhs(%x: f32[M, K], %a: f32[K, A], %b: f32[K, B]) -> (f32[M, A], f32[M, B])
    where M in 1..512, K in 1..512, A in 1..512, B in 1..512 {
  %y = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %z = dot %x, %b {lhs_contract = [1], rhs_contract = [0]}
  return %y, %z
} => {
  %ab = concat %a, %b {axis = 1}
  %yz = dot %x, %ab {lhs_contract = [1], rhs_contract = [0]}
  %y = slice %yz {start = [0, 0], limit = [M, A]}
  %z = slice %yz {start = [0, A], limit = [M, A + B]}
  return %y, %z
})";

size_t count(const Graph& graph, Opcode opcode) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += graph.opcode(n) == opcode;
  return found;
}

TEST(RuleMatcher, FindsCommutedOperands) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[N], %y: f32[N]) where N in 1..64 { %e = exp %x %s = add %e, %y return %s } "
      "=> { %e = exp %x %s = add %y, %e return %s }");
  const Graph graph = parse_graph(
                          "graph @g(%a: f32[8], %b: f32[8]) { %e = exp %a %s = add %b, %e "
                          "return %s, %e }")
                          .value();
  const std::vector<RuleMatch> matches = RuleMatcher(rule).all(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].sizes.at("N"), Dim(8));
}

TEST(RuleMatcher, HoldsGuardsRangesAndConstants) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %c = constant 2 : f32[] %b = broadcast %c {dims = "
      "[N], map = []} "
      "%s = mul %b, %x return %s } => { %s = add %x, %x return %s } when N < 8");
  const auto matches = [&](std::string_view text) {
    return RuleMatcher(rule).all(parse_graph(text).value()).size();
  };
  EXPECT_EQ(
      matches(
          "graph @g(%a: f32[7]) { %c = constant 2 : f32[] %b = broadcast %c {dims = [7], map = []} "
          "%s = mul %a, %b return %s }"),
      1u);
  EXPECT_EQ(
      matches(
          "graph @g(%a: f32[8]) { %c = constant 2 : f32[] %b = broadcast %c {dims = [8], map = []} "
          "%s = mul %a, %b return %s }"),
      0u);
  EXPECT_EQ(
      matches(
          "graph @g(%a: f32[7]) { %c = constant 3 : f32[] %b = broadcast %c {dims = [7], map = []} "
          "%s = mul %a, %b return %s }"),
      0u);
  EXPECT_EQ(
      matches(
          "graph @g(%a: f64[7]) { %c = constant 2 : f64[] %b = broadcast %c {dims = [7], map = []} "
          "%s = mul %a, %b return %s }"),
      0u);
}

TEST(RuleMatcher, RewritesSeveralResults) {
  const Rule rule = rule_of(kDots);
  const Graph graph = parse_graph(R"(graph @g(%x: f32[4, 3], %a: f32[3, 5], %b: f32[3, 2]) {
  %y = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %e = exp %y
  %z = dot %x, %b {lhs_contract = [1], rhs_contract = [0]}
  return %e, %z
})")
                          .value();
  const std::vector<RuleMatch> matches = RuleMatcher(rule).all(graph);
  // Each dot is matched as each of the two, and with itself.
  ASSERT_EQ(matches.size(), 4u);
  for (const RuleMatch& match : matches) {
    const Graph changed = apply(rule, graph, match).value();
    ASSERT_TRUE(verify(changed).ok());
    const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
    const std::vector<Tensor> was = evaluate(graph, inputs).value();
    const std::vector<Tensor> is = evaluate(changed, inputs).value();
    for (size_t o = 0; o < was.size(); ++o)
      for (int64_t i = 0; i < was[o].elements(); ++i)
        EXPECT_NEAR(was[o].real_at(i), is[o].real_at(i), 1e-4);
  }
  EXPECT_EQ(count(apply(rule, graph, matches[0]).value(), Opcode::dot) +
                count(apply(rule, graph, matches[1]).value(), Opcode::dot),
            3u);
}

TEST(RuleMatcher, RefusesACycle) {
  const Rule rule = rule_of(kDots);
  // The second dot's operand depends on the first one's result.
  const Graph graph = parse_graph(R"(graph @g(%x: f32[3, 3], %a: f32[3, 3]) {
  %y = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %e = exp %y
  %z = dot %x, %e {lhs_contract = [1], rhs_contract = [0]}
  return %z
})")
                          .value();
  for (const RuleMatch& match : RuleMatcher(rule).all(graph)) {
    EXPECT_EQ(match.values[rule.left.outputs()[0].index],
              match.values[rule.left.outputs()[1].index]);
    EXPECT_TRUE(apply(rule, graph, match).ok());
  }
}

TEST(RuleMatcher, MatchesSymbolicSizes) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[M, N]) where M in 1..64, N in 1..64 { %t = transpose %x {permutation = "
      "[1, 0]} %y = transpose %t {permutation = [1, 0]} return %y } => { return %x }");
  const Graph graph = parse_graph(
                          "graph @g(%a: f32[B, 8]) -> f32[B, 8] where B in 1..32 { %t = transpose "
                          "%a {permutation = [1, 0]} %y = transpose %t {permutation = [1, 0]} "
                          "%e = exp %y return %e }")
                          .value();
  const std::vector<RuleMatch> matches = RuleMatcher(rule).all(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(apply(rule, graph, matches[0]).value().node_count(), 2u);
}

}  // namespace
}  // namespace hone::HONE_FILE
