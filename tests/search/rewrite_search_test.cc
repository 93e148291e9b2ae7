#include "search/rewrite_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/builder.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "rules/rule_files.h"
#include "search/node_cost.h"
#include "search/optimize.h"
#include "search/retrace.h"
#include "tests/prove/rules_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}
const Cost& cost() {
  static const AnalyticCost cost(target());
  return cost;
}
const std::vector<Rule>& rules() {
  static const std::vector<Rule> rules = default_rules().value();
  return rules;
}

const std::vector<NodeCost>& nodes() {
  static const std::vector<NodeCost> nodes = {node_cost(target())};
  return nodes;
}

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }

// Three products of one input, two convs of another, and a norm.
Graph sample() {
  return graph_of(R"(graph @sample(%x: f32[4, 8, 32], %i: f32[1, 8, 6, 6], %q: f32[32, 32],
      %k: f32[32, 32], %v: f32[32, 32], %m: f32[16, 8, 1, 1], %n: f32[24, 8, 1, 1], %s: f32[16])
      -> (f32[4, 8, 32], f32[4, 8, 32], f32[4, 8, 32], f32[1, 40, 6, 6]) {
  %a = dot %x, %q {lhs_contract = [2], rhs_contract = [1]}
  %b = dot %x, %k {lhs_contract = [2], rhs_contract = [1]}
  %c = dot %x, %v {lhs_contract = [2], rhs_contract = [1]}
  %d = conv %i, %m
  %sb = broadcast %s {dims = [1, 16, 6, 6], map = [1]}
  %e = mul %d, %sb
  %f = conv %i, %n
  %g = concat %e, %f {axis = 1}
  return %a, %b, %c, %g
})");
}

size_t count(const Graph& graph, Opcode opcode) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += graph.opcode(n) == opcode;
  return found;
}

void expect_equal(const Graph& a, const Graph& b) {
  const std::vector<Tensor> inputs = random_inputs(a, 1).value();
  const EvalOptions wide = {.real_outputs_as_f64 = true};
  const std::vector<Tensor> was = evaluate(a, inputs, wide).value();
  const std::vector<Tensor> is = evaluate(b, inputs, wide).value();
  ASSERT_EQ(was.size(), is.size());
  for (size_t o = 0; o < was.size(); ++o)
    for (int64_t i = 0; i < was[o].elements(); ++i)
      ASSERT_NEAR(was[o].real_at(i), is[o].real_at(i), 1e-6);
}

Result<double> products(const Graph& graph) {
  return static_cast<double>(1 + count(graph, Opcode::dot) + count(graph, Opcode::conv));
}

TEST(RewriteSearch, FindsWhatIsCheapByThePriceThatItIsGiven) {
  for (size_t most : {0, 20'000}) {  // without and with an e-graph
    const Rewritten found = search_rewrites(sample(), rules(), products, nodes(),
                                            {.seconds = 20, .egraph = {.nodes = most}})
                                .value();
    EXPECT_EQ(found.before, 6);
    EXPECT_EQ(found.after, 3);
    EXPECT_EQ(count(found.graph, Opcode::dot), 1u);
    EXPECT_EQ(print(replay(rewritable(sample()).value(), found.rewrites, rules()).value()),
              print(found.graph));
    EXPECT_FALSE(found.rewrites.empty());
    expect_equal(sample(), found.graph);
  }
}

TEST(RewriteSearch, GivesWhatComputesTheSameWhateverThePrice) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto price = [&](const Graph& graph) -> Result<double> {
      return 1 + static_cast<double>(hash_mix(structural_hash(graph) + seed) % 1000) / 1000;
    };
    const Rewritten found =
        search_rewrites(sample(), rules(), price, nodes(), {.seconds = 0.4, .relaxation = 2})
            .value();
    EXPECT_LE(found.after, found.before);
    ASSERT_TRUE(verify(found.graph).ok());
    expect_equal(sample(), found.graph);
  }
}

TEST(RewriteSearch, GivesTheBestSoFar) {
  const Rewritten none =
      search_rewrites(sample(), rules(), products, nodes(), {.seconds = 0}).value();
  EXPECT_EQ(none.end, RewriteEnd::seconds);
  EXPECT_EQ(none.after, none.before);
  CancelToken cancel;
  size_t priced = 0;
  const auto price = [&](const Graph& graph) {
    if (++priced == 3) cancel.cancel();
    return products(graph);
  };
  const Rewritten some = search_rewrites(sample(), rules(), price, nodes(),
                                         {.egraph = {.nodes = 0}, .cancel = &cancel})
                             .value();
  EXPECT_EQ(some.end, RewriteEnd::cancelled);
  EXPECT_EQ(some.priced, 3u);
  EXPECT_EQ(search_rewrites(sample(), {}, products, nodes()).value().end, RewriteEnd::done);
}

TEST(RewriteSearch, LeavesOutWhatHasNoPrice) {
  size_t priced = 0;
  const auto price = [&](const Graph& graph) -> Result<double> {
    if (++priced == 2) return unsupported("no");
    return products(graph);
  };
  std::string told;
  const Rewritten found =
      search_rewrites(sample(), rules(), price, nodes(),
                      {.seconds = 20, .told = [&](std::string_view line) { told += line; }})
          .value();
  EXPECT_EQ(found.after, 3);
  EXPECT_THAT(told, HasSubstr("left out"));
}

TEST(RewriteSearch, CountsNodesOfNoRule) {
  const Graph graph = graph_of("graph @g(%x: f32[4]) { %a = cos %x %b = add %a, %x return %b }");
  EXPECT_EQ(nodes_outside(graph, rules()), 1u);
}

TEST(GraphPrice, IsThatOfThePreparedGraph) {
  GraphPrice price(target(), cost());
  const double exact = price.exact(sample()).value();
  EXPECT_DOUBLE_EQ(price.quick(rewritable(sample()).value()).value(), exact);
}

// A transposed conv is several dense ones, of weights that are made of its own.
TEST(GraphPrice, IsOfDenseConvs) {
  Builder b("g");
  const Value x = b.parameter("x", DType::f32, {1, 32, 28, 28});
  const Type type = Type::get(DType::f32, {32, 32, 4, 4});
  std::vector<double> numbers(32 * 32 * 16);
  Rng rng(1);
  for (double& each : numbers) each = rng.normal();
  const Ints pad = {2, 2};
  const Value w = b.constant(Tensor::from_reals(type, numbers));
  const Value y = b.op(Opcode::conv, {x, w},
                       {{"pad_low", pad}, {"pad_high", pad}, {"input_dilation", Ints{2, 2}}});
  const Graph graph = b.finish({y}).value();
  GraphPrice price(target(), cost());
  EXPECT_DOUBLE_EQ(price.quick(rewritable(graph).value()).value(), price.exact(graph).value());
}

// A conv whose weights are computed, and one that has them. Values of 32 channels are small enough
// to be looked through for equal numbers.
TEST(GraphPrice, CountsWeightsThatAreComputedAsConstants) {
  for (int64_t channels : {32, 64}) {
    Builder b("g");
    const Value x = b.parameter("x", DType::f32, {1, channels, 28, 28});
    const auto weights = [&](uint64_t seed) {
      const Type type = Type::get(DType::f32, {channels, channels, 3, 3});
      std::vector<double> numbers(static_cast<size_t>(channels * channels * 9));
      Rng rng(seed);
      for (double& each : numbers) each = rng.normal();
      return b.constant(Tensor::from_reals(type, numbers));
    };
    const Value sum = b.op(Opcode::add, {weights(1), weights(2)});
    const Value y =
        b.op(Opcode::conv, {x, sum}, {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}});
    const Graph graph = b.finish({y}).value();
    GraphPrice price(target(), cost());
    const Graph folded = fold_weights(graph).value();
    EXPECT_DOUBLE_EQ(price.quick(graph).value(), price.exact(folded).value());
  }
}

TEST(Optimize, TakesWhatIsCheaperAndKeepsNames) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[512, 256], %w: f32[512, 512]) {
  %t = transpose %x {permutation = [1, 0]}
  %d = dot %t, %w {lhs_contract = [1], rhs_contract = [0]}
  %u = transpose %d {permutation = [1, 0]}
  %y = exp %u
  return %y, %d
})");
  const Optimized result =
      optimize(graph, rules(), target(), cost(), {.rewrite = {.seconds = 5}}).value();
  ASSERT_TRUE(verify(result.graph).ok());
  EXPECT_LE(result.after, result.before);
  for (size_t o = 0; o < 2; ++o)
    EXPECT_EQ(result.graph.name(result.graph.outputs()[o]), graph.name(graph.outputs()[o]));
  expect_equal(graph, result.graph);
  GraphPrice price(target(), cost());
  EXPECT_DOUBLE_EQ(price.exact(result.graph).value(), result.after);
  EXPECT_EQ(print(rewritten(graph, result.plan).value()), print(result.graph));
}

// The second rewrite is of a value that the first one has made, and nothing is left of that.
TEST(Retrace, GoesThroughWhatRewritesHaveMade) {
  const std::vector<Rule> chain = parse_rules(R"(
rule @first(%x: f32[N]) -> f32[N] where N in 1..64 {
  %a = tanh %x %y = neg %a return %y
} => {
  %a = neg %x %y = tanh %a return %y
}
rule @second(%x: f32[N]) -> f32[N] where N in 1..64 {
  %a = neg %x %b = neg %a return %b
} => {
  return %x
})")
                                      .value();
  const std::vector<RuleMatcher> matchers(chain.begin(), chain.end());
  const Graph graph = rewritable(graph_of("graph @g(%x: f32[8]) { %n = neg %x %t = tanh %n "
                                          "%y = neg %t return %y }"))
                          .value();
  EGraph egraph = EGraph::of(graph).value();
  const Saturated done = saturate(egraph, matchers, {}).value();
  const Extracted found = extract(egraph, nodes()[0]).value();
  EXPECT_EQ(found.graph.node_count(), 2u);
  const Retraced made =
      retrace(graph, egraph, done, matchers, found.origins, Ranges(), [] { return true; }).value();
  std::vector<std::string> names;
  for (const Rewrite& each : made.rewrites) names.push_back(each.rule);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(count(made.graph, Opcode::tanh), 1u);
  EXPECT_EQ(made.graph.node_count(), 2u);
  EXPECT_EQ(print(replay(graph, made.rewrites, chain).value()), print(made.graph));
  expect_equal(graph, made.graph);
  const Retraced none =
      retrace(graph, egraph, done, matchers, found.origins, Ranges(), [] { return false; }).value();
  EXPECT_TRUE(none.rewrites.empty());
}

// A block of RepVGG: 3x3, 1x1 and the input itself, each with a norm, added.
TEST(Optimize, MakesOneConvolutionOfThreeBranches) {
  constexpr int64_t kChannels = 32, kSize = 28;
  Builder b("g");
  Rng rng(1);
  const auto numbers = [&](const Dims& dims, double mean, double deviation) {
    const Type type = Type::get(DType::f32, dims);
    std::vector<double> list(static_cast<size_t>(type.static_elements()));
    for (double& each : list) each = mean + deviation * rng.normal();
    return b.constant(Tensor::from_reals(type, list));
  };
  const auto norm = [&](Value x) {
    const Dims dims = {kChannels};
    const Value scale = numbers(dims, 1, 0.1), bias = numbers(dims, 0, 1);
    return b.op(Opcode::batch_norm, {x, scale, bias, numbers(dims, 0, 1), numbers(dims, 2, 0.1)});
  };
  Value x = b.parameter("x", DType::f32, {1, kChannels, kSize, kSize});
  const Ints one = {1, 1};
  for (int block = 0; block < 2; ++block) {
    const Value v = numbers({kChannels, kChannels, 3, 3}, 0, 0.1);
    const Value w = numbers({kChannels, kChannels, 1, 1}, 0, 0.1);
    const Value wide = norm(b.op(Opcode::conv, {x, v}, {{"pad_low", one}, {"pad_high", one}}));
    const Value narrow = norm(b.op(Opcode::conv, {x, w}));
    // In either order.
    x = relu(block == 0 ? wide + narrow + norm(x) : wide + (narrow + norm(x)));
  }
  const Graph graph = b.finish({x}).value();
  const Optimized result =
      optimize(graph, rules(), target(), cost(), {.rewrite = {.seconds = 20}, .threads = 1})
          .value();
  EXPECT_TRUE(result.is_cheaper);
  EXPECT_EQ(count(graph, Opcode::conv), 4u);
  EXPECT_EQ(count(result.graph, Opcode::conv), 2u);
  EXPECT_EQ(count(result.graph, Opcode::iota), 0u);
  expect_equal(graph, result.graph);
}

TEST(Optimize, LeavesWhatIsCheaperByLessThanTheMargin) {
  const Graph graph = graph_of(R"(graph @g(%a: f32[64, 256], %b: f32[256, 256], %c: f32[256, 8]) {
  %p = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %p, %c {lhs_contract = [1], rhs_contract = [0]}
  return %y
})");
  const auto found = [&](double margin) {
    return optimize(graph, rules(), target(), cost(),
                    {.rewrite = {.seconds = 5, .assumed_decades = 10}, .margin = margin})
        .value();
  };
  const Optimized taken = found(0);
  ASSERT_TRUE(taken.is_cheaper);
  EXPECT_EQ(taken.least, taken.after);
  const double part = 1 - taken.after / taken.before;
  EXPECT_TRUE(found(part - 0.001).is_cheaper);
  const Optimized left = found(part + 0.001);
  EXPECT_FALSE(left.is_cheaper);
  EXPECT_FALSE(has_rewrites(left.plan));
  EXPECT_EQ(print(left.graph), print(graph));
  EXPECT_EQ(left.after, left.before);
  EXPECT_EQ(left.least, taken.after);
}

// Graphs cost what its baseline says, not what it says itself.
class TrustedWithSchedules : public AnalyticCost {
 public:
  TrustedWithSchedules() : AnalyticCost(HONE_FILE::target()) {}
  const Cost* baseline() const override { return &HONE_FILE::cost(); }
  double command() const override { return 1; }
};

TEST(Optimize, ComparesGraphsByTheBaseline) {
  const Graph graph = graph_of("graph @g(%x: f32[512, 256]) { %y = exp %x return %y }");
  const OptimizeOptions options = {.rewrite = {.seconds = 0.1}};
  EXPECT_EQ(optimize(graph, rules(), target(), TrustedWithSchedules(), options)->before,
            optimize(graph, rules(), target(), cost(), options)->before);
}

// One row is wanted of products, whose slice moves in front of all; no step alone is much cheaper.
TEST(Optimize, MovesSlicesInFrontOfWhatComputes) {
  const Graph graph = one_row_wanted(96, 128, 256).graph();
  const Optimized result =
      optimize(graph, rules(), target(), cost(), {.rewrite = {.seconds = 10}}).value();
  EXPECT_LT(result.after, 0.5 * result.before);
  expect_equal(graph, result.graph);
}

// The body of a loop is a graph of its own.
TEST(Optimize, RewritesRegions) {
  const Graph graph = graph_of(R"(graph @g(%h: f32[1024, 64], %x: f32[3, 64, 64]) {
  %loop = scan %h, %x {carried = 1} body (%s: f32[1024, 64], %f: f32[64, 64]) {
    %t = transpose %s {permutation = [1, 0]}
    %u = transpose %t {permutation = [1, 0]}
    %c = dot %u, %f {lhs_contract = [1], rhs_contract = [0]}
    return %c
  }
  return %loop
})");
  const Optimized result =
      optimize(graph, rules(), target(), cost(), {.rewrite = {.seconds = 10}, .margin = 0}).value();
  EXPECT_TRUE(result.is_cheaper);
  EXPECT_FALSE(result.plan.region.at("loop.body").rewrite.empty());
  EXPECT_EQ(result.nodes, 8u);
  expect_equal(graph, result.graph);
}

// Rules that grow the graph without an end, and a search with little of everything.
TEST(RewriteSearch, EndsWhereItsLimitsAreAndGivesTheBest) {
  const std::vector<Rule> grow = parse_rules(R"(
rule @grow(%x: f32[N], %y: f32[N]) -> f32[N] where N in 1..64 {
  %a = add %x, %y
  return %a
} => {
  %b = add %y, %x
  %n = neg %b
  %a = neg %n
  return %a
}
rule @shrink(%x: f32[N]) -> f32[N] where N in 1..64 {
  %n = neg %x
  %a = neg %n
  return %a
} => {
  return %x
}
)")
                                     .value();
  const Graph graph = graph_of(
      "graph @g(%x: f32[4], %y: f32[4]) { %a = add %x, %y %n = neg %a %z = neg %n return %z }");
  const auto price = [](const Graph& one) -> Result<double> {
    return static_cast<double>(one.node_count());
  };
  for (const SaturateLimits& limits :
       {SaturateLimits{.nodes = 4}, SaturateLimits{.bytes = 2000}, SaturateLimits{.rounds = 1},
        SaturateLimits{.matches = 1}, SaturateLimits{.seconds = 0}}) {
    const Rewritten found =
        search_rewrites(graph, grow, price, nodes(), {.seconds = 1, .egraph = limits}).value();
    EXPECT_EQ(found.after, 3);
    expect_equal(graph, found.graph);
  }
}

TEST(Optimize, GivesTheModelIfNothingIsCheaper) {
  const Graph graph = graph_of("graph @g(%x: f32[64]) { %y = exp %x return %y }");
  const Optimized result = optimize(graph, rules(), target(), cost()).value();
  EXPECT_FALSE(result.is_cheaper);
  EXPECT_FALSE(has_rewrites(result.plan));
  EXPECT_EQ(print(result.graph), print(graph));
}

// Both transposes go, so both outputs are the input.
TEST(Optimize, KeepsNamesOfOutputsThatBecomeInputs) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[64, 96]) {
  %t = transpose %x {permutation = [1, 0]}
  %y = transpose %t {permutation = [1, 0]}
  %s = transpose %x {permutation = [1, 0]}
  %z = transpose %s {permutation = [1, 0]}
  return %y, %z
})");
  const Optimized result =
      optimize(graph, rules(), target(), cost(), {.rewrite = {.seconds = 5}}).value();
  ASSERT_TRUE(verify(result.graph).ok());
  EXPECT_EQ(result.graph.name(result.graph.outputs()[0]), "y");
  EXPECT_EQ(result.graph.name(result.graph.outputs()[1]), "z");
  expect_equal(graph, result.graph);
}

TEST(Optimize, RefusesOpenSizes) {
  const Graph graph =
      graph_of("graph @g(%x: f32[N]) -> f32[N] where N in 1..8 { %y = exp %x return %y }");
  const Result<Optimized> result = optimize(graph, rules(), target(), cost());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().to_string(), HasSubstr("open size N"));
}

}  // namespace
}  // namespace hone::HONE_FILE
