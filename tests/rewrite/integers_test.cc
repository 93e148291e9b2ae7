#include <gtest/gtest.h>

#include "ir/op_def.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/accuracy.h"
#include "rewrite/passes.h"
#include "tests/rewrite/quantized_testing.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

int64_t count(const Graph& graph, Opcode opcode) {
  int64_t count = 0;
  for (NodeId n : graph.nodes()) count += graph.opcode(n) == opcode ? 1 : 0;
  return count;
}

// Contractions that sum integers, and all of them.
std::pair<int64_t, int64_t> contractions(const Graph& graph) {
  std::pair<int64_t, int64_t> found;
  for (NodeId n : graph.nodes()) {
    if (class_of(graph.opcode(n)) != OpClass::contraction) continue;
    found.first += graph.type(graph.result(n)).dtype() == DType::i32 ? 1 : 0;
    ++found.second;
  }
  return found;
}

Graph after(std::string_view text) {
  const Graph graph = products_of_integers(parse_graph(text).value()).value();
  EXPECT_TRUE(verify(graph).ok());
  return graph;
}

// True if the dot of x: u8[4, 6] and w: i8[6, 3], made reals by these statements, sums integers.
bool sums_integers(std::string_view reals, std::string_view dot = "dot %xr, %wr") {
  const Graph graph =
      after(fmt::format(R"(graph @g(%x: u8[4, 6], %d: f32[], %v: i8[6, 3]) -> f32[4, 3] {{
    %w = constant [1, -2, 3, -4, 5, -6, 7, -8, 9, 0, 11, 127, 13, 4, 5, 6, 7, -128] : i8[6, 3]
    %s = constant 0.125 : f32[]
    %z = constant 119 : u8[]
    %c = constant [0.5, 2, 3] : f32[3]
    %r = constant [1, 2, 3, 4, 5, 6] : f32[6]
    %huge = constant 1e30 : f32[]
    {}
    %y = {} {{lhs_contract = [1], rhs_contract = [0]}}
    return %y
  }})",
                        reals, dot));
  return contractions(graph).first > 0;
}

TEST(ProductsOfIntegers, AreThoseOfDequantizedBytes) {
  const std::string x = "%xr = dequantize %x, %s, %z\n", w = "%wr = dequantize %w, %s\n";
  EXPECT_TRUE(sums_integers(x + w));
  EXPECT_TRUE(sums_integers("%xr = dequantize %x, %s\n" + w));
  EXPECT_TRUE(sums_integers(x + "%wr = dequantize %w, %c {axis = 1}"));
  EXPECT_TRUE(sums_integers(x + "%wr = dequantize %w, %c {axis = -1}"));
  // Scales along what is summed, from data, or so large that sums of reals are infinite.
  EXPECT_FALSE(sums_integers(x + "%wr = dequantize %w, %r {axis = 0}"));
  EXPECT_FALSE(sums_integers("%xr = dequantize %x, %d\n" + w));
  EXPECT_FALSE(sums_integers("%xr = dequantize %x, %huge\n" + w));
  // Real factors.
  EXPECT_FALSE(sums_integers("%xr = cast %x {dtype = f32}\n" + w));
}

TEST(ProductsOfIntegers, FollowScalesThroughMoves) {
  const std::string x = "%xr = dequantize %x, %s\n";
  EXPECT_TRUE(sums_integers(x + R"(%wt = transpose %w {permutation = [1, 0]}
    %wq = dequantize %wt, %c {axis = 0}
    %wr = transpose %wq {permutation = [1, 0]})"));
  EXPECT_TRUE(sums_integers(x + R"(%wq = dequantize %w, %c {axis = 1}
    %wb = reshape %wq {dims = [2, 3, 3]}
    %wr = reshape %wb {dims = [6, 3]})"));
}

TEST(ProductsOfIntegers, QuantizeAgainWithoutReals) {
  const Graph graph = after(R"(graph @g(%x: u8[1, 2, 4, 4]) -> u8[2, 8] {
    %s = constant 0.3 : f32[]
    %z = constant 7 : u8[]
    %r = dequantize %x, %s, %z
    %m = window_reduce %r {kind = max, window = [1, 1, 2, 2], stride = [1, 1, 1, 2],
                           pad_low = [0, 0, 1, 0]}
    %f = reshape %m {dims = [2, 8]}
    %y = quantize %f, %s, %z
    return %y
  })");
  EXPECT_EQ(count(graph, Opcode::dequantize), 0);
  EXPECT_EQ(count(graph, Opcode::quantize), 0);
  EXPECT_EQ(graph.node_count(), 3);
  // With another zero point there is a difference.
  EXPECT_EQ(count(after(R"(graph @g(%x: u8[8]) -> u8[8] {
    %s = constant 0.3 : f32[]
    %z = constant 7 : u8[]
    %o = constant 8 : u8[]
    %r = dequantize %x, %s, %z
    %y = quantize %r, %s, %o
    return %y
  })"),
                  Opcode::quantize),
            1);
}

// The rounding of a product is more than an inverse adds; an exact quotient stays.
TEST(ProductsOfIntegers, AreMultipliedByTheInverseOfAScale) {
  const auto divisions = [](std::string_view value) {
    return count(after(fmt::format(R"(graph @g(%x: u8[4, 6], %v: f32[4, 3]) -> i8[4, 3] {{
      %w = constant 3 : i8[6, 3]
      %s = constant 0.3 : f32[]
      %xr = dequantize %x, %s
      %wr = dequantize %w, %s
      %p = dot %xr, %wr {{lhs_contract = [1], rhs_contract = [0]}}
      %r = relu %p
      %y = quantize {}, %s {{dtype = i8}}
      return %y
    }})",
                                   value)),
                 Opcode::quantize);
  };
  EXPECT_EQ(divisions("%r"), 0);
  EXPECT_EQ(divisions("%v"), 1);
}

TEST(ProductsOfIntegers, RandomQuantizedGraphsAreAsAccurateAsBefore) {
  int64_t integers = 0, all = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Graph before = RandomQuantized(rng).graph();
    const Graph graph = products_of_integers(before).value();
    ASSERT_TRUE(verify(graph).ok());
    const auto [some, of] = contractions(graph);
    integers += some;
    all += of;
    const std::vector<Tensor> inputs = random_bytes(before, rng);
    const auto output = [&](const Graph& g, const EvalOptions& options) {
      return evaluate(g, inputs, options).value()[0];
    };
    const auto reference = [&](Numerics numerics) {
      return output(before, {.numerics = numerics, .real_outputs_as_f64 = true});
    };
    const AccuracyRun run = {.actual = output(graph, {.numerics = Numerics::fp32}),
                             .wide = reference(Numerics::wide),
                             .fp32 = reference(Numerics::fp32)};
    const Accuracy accuracy = hone::accuracy({&run, 1}).value();
    EXPECT_TRUE(accuracy.passed()) << accuracy.to_string() << print(before) << print(graph);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(integers, 300);
  EXPECT_GT(10 * integers, 9 * all);
}

}  // namespace
}  // namespace hone::HONE_FILE
