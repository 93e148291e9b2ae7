#include "rules/egraph.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/reference/evaluate.h"
#include "rules/extract.h"
#include "rules/rule_files.h"
#include "rules/saturate.h"
#include "rules/sizes.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }
EGraph egraph_of(std::string_view text) { return EGraph::of(graph_of(text)).value(); }
std::vector<Rule> rules_of(std::string_view text) { return parse_rules(text).value(); }

double one_each(const EGraph&, NodeId) { return 1; }

std::vector<RuleMatcher> matchers(const std::vector<Rule>& rules) {
  return {rules.begin(), rules.end()};
}

Saturated saturated(EGraph& egraph, const std::vector<Rule>& rules, SaturateLimits limits = {}) {
  return saturate(egraph, matchers(rules), limits).value();
}

void expect_equal(const Graph& a, const Graph& b, double tolerance = 1e-9) {
  const std::vector<Tensor> inputs = random_inputs(a, 1).value();
  const EvalOptions wide = {.real_outputs_as_f64 = true};
  const std::vector<Tensor> was = evaluate(a, inputs, wide).value();
  const std::vector<Tensor> is = evaluate(b, inputs, wide).value();
  ASSERT_EQ(was.size(), is.size());
  for (size_t o = 0; o < was.size(); ++o)
    for (int64_t i = 0; i < was[o].elements(); ++i) {
      const double x = was[o].real_at(i), y = is[o].real_at(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      ASSERT_NEAR(x, y, tolerance * std::max(1.0, std::abs(x))) << print(b);
    }
}

const std::vector<Rule>& algebra() {
  static const std::vector<Rule> rules = rules_of(R"(
rule @commute(%x: f32[N], %y: f32[N]) -> f32[N] where N in 1..64 {
  %s = add %x, %y return %s } => { %s = add %y, %x return %s }
rule @associate(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] where N in 1..64 {
  %a = add %x, %y %s = add %a, %z return %s } => { %a = add %y, %z %s = add %x, %a return %s }
)");
  return rules;
}

// ---- Classes ------------------------------------------------------------------------------------

TEST(EGraph, UnitesWhatEqualNodesGive) {
  EGraph egraph = egraph_of(
      "graph @g(%a: f32[4], %b: f32[4]) { %x = exp %a %y = exp %b %u = tanh %x %v = tanh %y "
      "return %u, %v }");
  const std::vector<ValueId> before = egraph.outputs();
  EXPECT_NE(before[0], before[1]);
  EXPECT_TRUE(egraph.unite(egraph.inputs()[0], egraph.inputs()[1]));
  EXPECT_FALSE(egraph.unite(egraph.inputs()[1], egraph.inputs()[0]));
  egraph.rebuild();
  EXPECT_EQ(egraph.outputs()[0], egraph.outputs()[1]);
  EXPECT_EQ(egraph.alive_nodes(), 4u);  // two parameters, exp, tanh
}

TEST(EGraph, UnitesAllResultsOfEqualNodes) {
  EGraph egraph = egraph_of(
      "graph @g(%a: f32[4], %b: f32[4], %k: i64[4]) { %x, %i = sort %a, %k {axis = 0} "
      "%y, %j = sort %b, %k {axis = 0} return %x, %y, %i, %j }");
  EXPECT_NE(egraph.outputs()[2], egraph.outputs()[3]);
  egraph.unite(egraph.inputs()[0], egraph.inputs()[1]);
  egraph.rebuild();
  EXPECT_EQ(egraph.outputs()[0], egraph.outputs()[1]);
  EXPECT_EQ(egraph.outputs()[2], egraph.outputs()[3]);
}

TEST(EGraph, HasEqualConstantsOnce) {
  EGraph egraph = egraph_of(
      "graph @g(%a: f32[]) { %x = constant 2 : f32[] %y = constant 2 : f32[] %u = add %a, %x "
      "%v = add %a, %y return %u, %v }");
  EXPECT_EQ(egraph.outputs()[0], egraph.outputs()[1]);
}

TEST(EGraph, RefusesOpenSizes) {
  const Result<EGraph> made = EGraph::of(
      graph_of("graph @g(%a: f32[N]) -> f32[N] where N in 1..8 { %x = exp %a return %x }"));
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().to_string().find("N is open"), std::string::npos);
}

// ---- Saturation ---------------------------------------------------------------------------------

TEST(Saturate, FindsAllOrdersOfASum) {
  EGraph egraph = egraph_of(
      "graph @g(%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4]) { %x = add %a, %b %y = add %x, %c "
      "%z = add %y, %d return %z }");
  const Saturated done = saturated(egraph, algebra(), {.rounds = 20});
  EXPECT_EQ(done.end, SaturateEnd::saturated);
  const std::vector<ValueId> other =
      egraph
          .add(graph_of("graph @g(%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4]) { %x = add %d, "
                        "%b %y = add %c, %a %z = add %y, %x return %z }"),
               egraph.inputs())
          .value();
  egraph.rebuild();
  EXPECT_EQ(egraph.find(other[0]), egraph.outputs()[0]);
}

// Sums of 12 have more orders than any memory.
Graph sum_of_many() {
  std::string text = "graph @g(%a0: f32[4]";
  for (int i = 1; i < 12; ++i) text += fmt::format(", %a{}: f32[4]", i);
  text += ") { %s0 = add %a0, %a1";
  for (int i = 2; i < 12; ++i) text += fmt::format(" %s{} = add %s{}, %a{}", i - 1, i - 2, i);
  return graph_of(text + " return %s10 }");
}

TEST(Saturate, StopsAtItsLimits) {
  const auto end_with = [](const SaturateLimits& limits) {
    const Graph graph = sum_of_many();
    EGraph egraph = EGraph::of(graph).value();
    const Saturated done = saturated(egraph, algebra(), limits);
    expect_equal(graph, extract(egraph, one_each).value().graph, 1e-5);
    return done.end;
  };
  EXPECT_EQ(end_with({.nodes = 500, .rounds = 100}), SaturateEnd::nodes);
  EXPECT_EQ(end_with({.nodes = 0}), SaturateEnd::nodes);
  EXPECT_EQ(end_with({.rounds = 0}), SaturateEnd::rounds);
  EXPECT_EQ(end_with({.rounds = 2}), SaturateEnd::rounds);
  EXPECT_EQ(end_with({.bytes = 100'000, .rounds = 100}), SaturateEnd::bytes);
  EXPECT_EQ(end_with({.seconds = 0}), SaturateEnd::seconds);
  CancelToken cancel;
  cancel.cancel();
  EGraph egraph = EGraph::of(sum_of_many()).value();
  EXPECT_EQ(saturate(egraph, matchers(algebra()), {}, &cancel)->end, SaturateEnd::cancelled);
}

// ---- Extraction ---------------------------------------------------------------------------------

TEST(Extract, LeavesOutCycles) {
  EGraph egraph = egraph_of(
      "graph @g(%a: f32[4]) { %one = constant 1 : f32[] %o = broadcast %one {dims = [4], map = []} "
      "%e = exp %a %x = mul %e, %o return %x }");
  saturated(egraph, rules_of("rule @once(%x: f32[N]) -> f32[N] where N in 1..64 { %1 = constant 1 "
                             ": f32[] %o = broadcast %1 {dims = [N], map = []} %y = mul %x, %o "
                             "return %y } => { return %x }"));
  // The class of exp has the product of itself and 1; even if that were for nothing.
  const auto cost = [](const EGraph& of, NodeId n) {
    return of.opcode(n) == Opcode::mul ? 0.0 : 1.0;
  };
  const Extracted found = extract(egraph, cost).value();
  EXPECT_EQ(print(found.graph), print(graph_of("graph @g(%a: f32[4]) { %e = exp %a return %e }")));
  EXPECT_EQ(found.origins, std::vector<uint32_t>{0});
}

constexpr std::string_view kDots =
    "graph @g(%x: f32[4, 3], %a: f32[3, 5], %b: f32[3, 2]) {"
    "%y = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}"
    "%z = dot %x, %b {lhs_contract = [1], rhs_contract = [0]} return %y, %z }";

TEST(Extract, TakesAMergeThatPaysForAllItsReadersAlone) {
  const Graph graph = graph_of(kDots);
  EGraph egraph = EGraph::of(graph).value();
  const Saturated done = saturated(egraph, default_rules().value());
  const auto cost = [](const EGraph& of, NodeId n) {
    return of.opcode(n) == Opcode::dot ? 10.0 : 1.0;
  };
  const Extracted found = extract(egraph, cost).value();
  size_t dots = 0;
  for (NodeId n : found.graph.nodes()) dots += found.graph.opcode(n) == Opcode::dot;
  EXPECT_EQ(dots, 1u);
  EXPECT_EQ(found.origins.size(), 1u);
  EXPECT_EQ(default_rules().value()[done.rule_of[found.origins[0]]].name, "dots_of_one_lhs");
  EXPECT_EQ(found.graph.label(found.graph.outputs()[1]), "%z");
  expect_equal(graph, found.graph);
}

TEST(Extract, CountsWhatConstantsDetermineAsNothing) {
  EGraph egraph = egraph_of(
      "graph @g(%x: f32[2]) { %a = constant [1, 2] : f32[2] %b = constant [3, 4] : f32[2] "
      "%p = mul %x, %a %q = mul %x, %b %y = add %p, %q return %y }");
  saturated(egraph, rules_of("rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] where N in "
                             "1..64 { %a = mul %x, %y %b = mul %x, %z %c = add %a, %b return %c } "
                             "=> { %s = add %y, %z %c = mul %x, %s return %c }"));
  EXPECT_EQ(extract(egraph, one_each)->cost, 2);  // the parameter and one product
}

TEST(Extract, KeepsInputsAndDonations) {
  Graph graph = graph_of("graph @g(%a: f32[4], %unused: f32[2]) { %y = exp %a return %y }");
  graph.add_donation(0, 0);
  const EGraph egraph = EGraph::of(graph).value();
  EXPECT_EQ(print(extract(egraph, one_each)->graph), print(graph));
}

TEST(EGraph, KnowsWhatGraphsCompute) {
  EGraph egraph = egraph_of(kDots);
  saturated(egraph, default_rules().value());
  // Rows of one product; a value that nothing in there computes; one that is told by its name.
  const Graph other = graph_of(
      "graph @g(%x: f32[4, 3], %a: f32[3, 5], %b: f32[3, 2]) {"
      "%c = concat %a, %b {axis = 1} %p = dot %x, %c {lhs_contract = [1], rhs_contract = [0]}"
      "%q = slice %p {start = [0, 5], limit = [4, 7]} %e = exp %q %y = neg %e return %y }");
  const std::vector<ValueId> classes = egraph.classes_in(other);
  const auto class_of = [&](uint32_t v) { return classes[v]; };
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(class_of(i), egraph.inputs()[i]);
  EXPECT_FALSE(class_of(3).is_none());
  EXPECT_EQ(class_of(5), egraph.outputs()[1]);
  EXPECT_TRUE(class_of(6).is_none());
  EXPECT_EQ(class_of(7), egraph.outputs()[0]);
}

// ---- Random graphs ------------------------------------------------------------------------------

// Left sides of rules at small sizes, one above the other where shapes allow: what an e-graph makes
// of them by all rules computes the same, whichever nodes are cheap.
TEST(EGraph, ExtractsWhatComputesTheSame) {
  const std::vector<Rule> rules = default_rules().value();
  const std::vector<RuleMatcher> all = matchers(rules);
  Rng rng(3);
  for (const Rule& rule : rules) {
    const std::vector<Bindings> sizes = distinct_sizes(rule, 1, rng);
    ASSERT_FALSE(sizes.empty()) << rule.name;
    const Graph graph = specialize(rule.left, sizes[0]).value();
    EGraph egraph = EGraph::of(graph).value();
    saturate(egraph, all, {.nodes = 2000, .rounds = 3}).value();
    for (int trial = 0; trial < 2; ++trial) {
      const uint64_t seed = rng.next();
      const auto cost = [&](const EGraph&, NodeId n) {
        return Rng(seed + n.index).uniform(0.1, 1);
      };
      const Graph found = extract(egraph, cost).value().graph;
      ASSERT_TRUE(verify(found).ok()) << rule.name;
      SCOPED_TRACE(rule.name);
      expect_equal(graph, found, 1e-5);
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
