#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "rewrite/prepare.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using PassRun = Result<Graph> (*)(const Graph&);

std::vector<Tensor> random_inputs(const Graph& graph, std::mt19937& random) {
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs()) {
    std::vector<double> values(static_cast<size_t>(graph.type(v).static_elements()));
    for (double& value : values) value = static_cast<double>(random() % 4001) / 1000 - 2;
    inputs.push_back(Tensor::from_reals(graph.type(v), values));
  }
  return inputs;
}

// The graph after the pass, which computes the same.
Graph after(PassRun pass, std::string_view text, double tolerance = 0) {
  const Graph before = parse_graph(text).value();
  const Graph made = pass(before).value();
  EXPECT_TRUE(verify(made).ok()) << print(made);
  std::mt19937 random(1);
  const std::vector<Tensor> inputs = random_inputs(before, random);
  const std::vector<Tensor> want = evaluate(before, inputs).value();
  const std::vector<Tensor> got = evaluate(made, inputs).value();
  for (size_t i = 0; i < want.size(); ++i)
    for (int64_t e = 0; e < want[i].elements(); ++e)
      EXPECT_NEAR(got[i].real_at(e), want[i].real_at(e), tolerance) << print(made);
  EXPECT_EQ(print(pass(made).value()), print(made));
  return made;
}

Result<Graph> prepared_alone(const Graph& graph) { return prepare(graph); }

// The ops but constants and broadcasts, in order.
std::string ops_of(const Graph& graph) {
  std::string ops;
  for (NodeId n : graph.nodes()) {
    const std::string_view op = name(graph.opcode(n));
    if (op == "parameter" || op == "constant" || op == "broadcast") continue;
    ops += (ops.empty() ? "" : " ") + std::string(op);
  }
  return ops;
}

TEST(SpelledOut, MasksAreChosenOnce) {
  const Graph graph = after(spelled_out_functions, R"(graph @g(%x: f32[3, 3], %y: f32[3, 3]) {
    %p = compare %x, %y {direction = gt}
    %c = cast %p {dtype = f32}
    %1 = constant 1 : f32[]
    %one = broadcast %1 {dims = [3, 3], map = []}
    %l = sub %one, %c
    %0 = constant 0 : f32[]
    %zero = broadcast %0 {dims = [3, 3], map = []}
    %q = compare %l, %zero {direction = eq}
    %m = constant -1000 : f32[]
    %low = broadcast %m {dims = [3, 3], map = []}
    %s = select %q, %low, %l
    %z = add %s, %x
    return %z
  })");
  EXPECT_EQ(ops_of(graph), "compare select add");
}

TEST(SpelledOut, PredicatesComeBackAsTheyWere) {
  const Graph graph = after(spelled_out_functions, R"(graph @g(%x: f32[4], %y: f32[4]) {
    %p = compare %x, %y {direction = gt}
    %n = not %p
    %c = cast %n {dtype = i32}
    %0 = constant 0 : i32[]
    %zero = broadcast %0 {dims = [4], map = []}
    %q = compare %c, %zero {direction = eq}
    %z = select %q, %x, %y
    return %z
  })");
  EXPECT_EQ(ops_of(graph), "compare select");
}

TEST(SpelledOut, QuotientsBecomeProductsWhereThatIsAsGood) {
  const auto divided = [](std::string_view divisor, std::string_view function) {
    return fmt::format(R"(graph @g(%x: f32[64]) {{
      %1 = constant {} : f32[]
      %c = broadcast %1 {{dims = [64], map = []}}
      %q = div %x, %c
      %z = {} %q
      return %z
    }})",
                       divisor, function);
  };
  EXPECT_EQ(ops_of(after(spelled_out_functions, divided("8", "floor"))), "mul floor");
  EXPECT_EQ(ops_of(after(spelled_out_functions, divided("1.4142135", "erf"), 1e-7)), "mul erf");
  // 49 times the nearest number to 1/49 is below 1.
  EXPECT_EQ(ops_of(after(spelled_out_functions, divided("49", "floor"))), "div floor");
  EXPECT_EQ(ops_of(after(spelled_out_functions, divided("0", "tanh"))), "div tanh");
}

TEST(SpelledOut, LogisticsAreFound) {
  const auto spelled = [](std::string_view lhs) {
    return fmt::format(R"(graph @g(%x: f32[8], %y: f32[8]) {{
      %1 = constant 1 : f32[]
      %one = broadcast %1 {{dims = [8], map = []}}
      %n = neg %x
      %e = exp %n
      %s = add %e, %one
      %z = div {}, %s
      return %z
    }})",
                       lhs);
  };
  EXPECT_EQ(ops_of(after(spelled_out_functions, spelled("%one"), 1e-7)), "logistic");
  EXPECT_EQ(ops_of(after(spelled_out_functions, spelled("%y"), 1e-6)), "logistic mul");
}

TEST(SpelledOut, OneFactorScalesAProduct) {
  const auto product = [](std::string_view factor) {
    return fmt::format(R"(graph @g(%x: f32[2, 3], %y: f32[4, 3]) {{
      %1 = constant {} : f32[]
      %a = broadcast %1 {{dims = [2, 3], map = []}}
      %b = broadcast %1 {{dims = [4, 3], map = []}}
      %s = mul %x, %a
      %t = mul %b, %y
      %z = dot %s, %t {{lhs_contract = [1], rhs_contract = [1]}}
      return %z
    }})",
                       factor);
  };
  EXPECT_EQ(ops_of(after(spelled_out_functions, product("0.35"), 1e-5)), "mul dot");
  EXPECT_EQ(ops_of(after(spelled_out_functions, product("1e-30"))), "mul mul dot");
}

TEST(SpelledOut, GathersAtKnownPlacesAreParts) {
  const auto gathered = [](std::string_view places, std::string_view rest) {
    return fmt::format(R"(graph @g(%x: f32[6, 5, 4]) {{
      %i = constant {}
      %z = gather %x, %i {{{}}}
      return %z
    }})",
                       places, rest);
  };
  constexpr std::string_view front =
      "offset_dims = [0, 1], collapsed_dims = [0], index_map = [0], index_vector_dim = 0, "
      "sizes = [1, 5, 4]";
  EXPECT_EQ(ops_of(after(spelled_out_functions, gathered("2 : i64[]", front))), "slice reshape");
  constexpr std::string_view middle =
      "offset_dims = [0, 2], collapsed_dims = [1], index_map = [1], index_vector_dim = 1, "
      "sizes = [6, 1, 4]";
  EXPECT_EQ(ops_of(after(spelled_out_functions, gathered("[0, 2, 4] : i64[3]", middle))), "slice");
  EXPECT_EQ(ops_of(after(spelled_out_functions, gathered("[0, 2, 3] : i64[3]", middle))), "gather");
  // Places are clamped.
  EXPECT_EQ(ops_of(after(spelled_out_functions, gathered("[4, 5, 6] : i64[3]", middle))), "gather");
}

TEST(LateBroadcasts, StepsAreTakenBeforeRowsAreRepeated) {
  const Graph graph = after(late_broadcasts, R"(graph @g(%m: f32[1, 4], %x: f32[8, 4]) {
    %w = broadcast %m {dims = [8, 4], map = [0, 1]}
    %1 = constant 1 : f32[]
    %one = broadcast %1 {dims = [8, 4], map = []}
    %l = sub %one, %w
    %s = mul %l, %l
    %z = add %s, %x
    return %z
  })");
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::sub || graph.opcode(n) == Opcode::mul)
      EXPECT_EQ(graph.type(graph.result(n)).static_elements(), 4) << print(graph);
}

// The zero point of all weights of a product, with other dims for groups.
TEST(LateBroadcasts, NumbersThatMovesAndStepsRepeatAreOneNumber) {
  const Graph graph = prepare(parse_graph(R"(graph @g(%x: i32[64, 2048]) -> i32[64, 2048] {
    %1 = constant 8 : u4[]
    %z = broadcast %1 {dims = [64, 64], map = []}
    %r = reshape %z {dims = [64, 64, 1]}
    %w = broadcast %r {dims = [64, 64, 32], map = [0, 1, 2]}
    %f = reshape %w {dims = [64, 2048]}
    %c = cast %f {dtype = i32}
    %y = sub %x, %c
    return %y
  })")
                                  .value())
                          .value();
  EXPECT_EQ(ops_of(graph), "sub") << print(graph);
}

// Folding makes arrays of small ones, of four bits, too.
TEST(Splats, OfTwoToAByteAreOneNumber) {
  const Graph graph = after(splats_as_broadcasts, R"(graph @g() {
    %e = constant [5, 5, 5] : u4[3]
    %o = constant [5, 5, 4] : u4[3]
    %y = cast %e {dtype = i32}
    %z = cast %o {dtype = i32}
    %s = add %y, %z
    return %s
  })");
  std::vector<int64_t> sizes;
  for (NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) sizes.push_back(graph.constant(n).elements());
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 3})) << print(graph);
}

TEST(LateBroadcasts, WhatIsRepeatedOtherwiseStays) {
  const Graph graph = after(late_broadcasts, R"(graph @g(%a: f32[4], %b: f32[4]) {
    %r = broadcast %a {dims = [4, 4], map = [0]}
    %c = broadcast %b {dims = [4, 4], map = [1]}
    %z = add %r, %c
    return %z
  })");
  EXPECT_EQ(ops_of(graph), "add");
}

TEST(BetweenReshapes, SumsAreComputedInTheDimsAround) {
  EXPECT_EQ(ops_of(after(compute_between_reshapes,
                         R"(graph @g(%x: f32[4, 3, 5], %m: f32[1, 4, 1, 5]) {
    %five = reshape %x {dims = [1, 4, 3, 5]}
    %b = broadcast %m {dims = [1, 4, 3, 5], map = [0, 1, 2, 3]}
    %s = add %five, %b
    %e = exp %s
    %z = reshape %e {dims = [4, 3, 5]}
    return %z
  })")),
            "reshape add exp");
  EXPECT_EQ(ops_of(after(compute_between_reshapes,
                         R"(graph @g(%x: f32[8, 3], %m: f32[4, 1]) {
    %more = reshape %x {dims = [2, 4, 3]}
    %b = broadcast %m {dims = [2, 4, 3], map = [1, 2]}
    %s = add %more, %b
    %z = reshape %s {dims = [8, 3]}
    return %z
  })")),
            "reshape add");
}

TEST(BetweenReshapes, WhatOthersReadStays) {
  EXPECT_EQ(ops_of(after(compute_between_reshapes, R"(graph @g(%x: f32[8, 3]) {
    %more = reshape %x {dims = [2, 4, 3]}
    %s = exp %more
    %z = reshape %s {dims = [8, 3]}
    return %s, %z
  })")),
            "reshape exp reshape");
}

TEST(ShortForms, ImagesThatGrowByWholeFactorsAreRepeated) {
  const auto grown = [](std::string_view sizes) {
    return after(prepared_alone, fmt::format(R"(graph @g(%x: f32[1, 3, 4, 5]) {{
      %y = resize %x {{sizes = [1, 3, {}], mode = nearest}}
      return %y
    }})",
                                             sizes));
  };
  EXPECT_EQ(ops_of(grown("8, 15")), "reshape");
  EXPECT_EQ(ops_of(grown("8, 7")), "gather reshape");
  EXPECT_EQ(ops_of(grown("4, 5")), "");
}

TEST(ShortForms, RandomGraphsComputeTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = expand_composites(random_graph({.seed = seed})).value();
    graph = splats_as_broadcasts(fold_constants(graph).value()).value();
    Graph made = graph;
    for (PassRun pass : {spelled_out_functions, late_broadcasts, compute_between_reshapes})
      made = pass(made).value();
    ASSERT_TRUE(verify(made).ok()) << print(made);
    std::mt19937 random(1);
    const std::vector<Tensor> inputs = random_inputs(graph, random);
    const Result<std::vector<Tensor>> want = evaluate(graph, inputs);
    if (!want.ok()) continue;
    const std::vector<Tensor> got = evaluate(made, inputs).value();
    for (size_t i = 0; i < want->size(); ++i)
      for (int64_t e = 0; e < (*want)[i].elements(); ++e) {
        const double x = got[i].real_at(e), y = (*want)[i].real_at(e);
        if (std::isnan(x) || std::isnan(y))
          ASSERT_EQ(std::isnan(x), std::isnan(y));
        else if (std::isinf(y))
          ASSERT_EQ(x, y);
        else
          ASSERT_NEAR(x, y, 1e-5 * (1 + std::abs(y))) << print(graph) << print(made);
      }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
