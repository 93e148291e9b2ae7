#include "grad/rematerialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/barrier.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/derived.h"
#include "rewrite/prepare.h"
#include "tests/grad/grad_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

constexpr uint32_t kLoss[] = {0};

// The gradients of layers of tanh by their weights.
Graph layers(int count) {
  Builder b("layers");
  Value x = b.parameter("x", DType::f64, {4, 3});
  Mask weights = {false};
  for (int i = 0; i < count; ++i) {
    const Value w = b.parameter("w" + std::to_string(i), DType::f64, {3, 3});
    weights.push_back(true);
    x = tanh(matmul(x, w)).named("a" + std::to_string(i));
  }
  return grad(b.finish({reduce_sum(x * x, {0, 1})}).value(), 0, weights).value();
}

size_t count(const Graph& graph, Opcode opcode) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += graph.opcode(n) == opcode;
  return found;
}

size_t barriers(const Graph& graph) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += is_barrier(graph.op(n));
  return found;
}

void expect_same(const Graph& a, const Graph& b, uint64_t seed) {
  const std::vector<Tensor> inputs = random_graph_inputs(a, seed);
  const auto values = [&](const Graph& graph) {
    return evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
  };
  const std::vector<Tensor> expected = values(a), actual = values(b);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(expected[i].same_bytes(actual[i])) << print(a) << print(b);
}

TEST(Rematerialize, ComputesThePartsInFrontAgain) {
  const Graph plain = layers(4);
  const Result<Rematerialized> made = rematerialize(plain, kLoss, {.share = 0.5});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  // %a0 is computed again from %x, once %a1 has a cotangent.
  EXPECT_EQ(barriers(made->graph), 1u) << print(made->graph);
  EXPECT_EQ(count(made->graph, Opcode::tanh), 5u) << print(made->graph);
  EXPECT_GT(made->nodes, 0u);
  EXPECT_GT(made->flops, 0);
  expect_same(plain, made->graph, 1);
}

TEST(Rematerialize, TheWayToTheLossStays) {
  const Graph plain = layers(3);
  const Rematerialized made = rematerialize(plain, kLoss, {.share = 0.67, .parts = 2}).value();
  EXPECT_EQ(made.graph.name(made.graph.outputs()[0]), plain.name(plain.outputs()[0]));
  EXPECT_EQ(made.graph.output_types(), plain.output_types());
  EXPECT_TRUE(verify(made.graph).ok());
}

TEST(Rematerialize, PreparingDoesNotMergeWhatIsComputedAgain) {
  const Graph plain = layers(6);
  const Rematerialized made = rematerialize(plain, kLoss, {.share = 0.67, .parts = 2}).value();
  const Graph prepared = prepare(made.graph).value();
  EXPECT_GT(count(prepared, Opcode::tanh), 6u) << print(prepared);
  EXPECT_EQ(count(prepared, Opcode::tanh), count(made.graph, Opcode::tanh));
  expect_same(plain, prepared, 2);
}

TEST(Rematerialize, LeavesOutWhatIsCheap) {
  Builder b("exponents");
  const Value x = b.parameter("x", DType::f64, {8});
  const Graph function = b.finish({reduce_sum(exp(exp(x)), {0})}).value();
  const Graph plain = grad(function, 0, {true}).value();
  const Rematerialized made = rematerialize(plain, kLoss, {.leaves_out_cheap = true}).value();
  EXPECT_EQ(count(plain, Opcode::exp), 2u);
  EXPECT_EQ(count(made.graph, Opcode::exp), 4u) << print(made.graph);
  expect_same(plain, made.graph, 3);
}

TEST(Rematerialize, StoringAllChangesNothing) {
  const Graph plain = layers(2);
  EXPECT_EQ(print(rematerialize(plain, kLoss, kStoreAll)->graph), print(plain));
}

TEST(Rematerialize, RefusesOpenSizes) {
  Builder b("open");
  const Value x = b.parameter("x", DType::f64, {Symbol::get("N", 1, 8)});
  const Graph plain = grad(b.finish({reduce_sum(exp(x), {0})}).value(), 0, {true}).value();
  const Result<Rematerialized> made = rematerialize(plain, kLoss, {.leaves_out_cheap = true});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(made.error().to_string(), HasSubstr("open sizes"));
}

// Whatever is stored, the numbers are the same.
TEST(Rematerialize, RandomGraphsKeepTheirValues) {
  int derived = 0;
  size_t again = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph =
        random_graph({.seed = seed, .min_steps = 2, .max_steps = 6, .max_elements = 100});
    const std::optional<Graph> plain = with_gradients(graph, seed);
    if (!plain) continue;
    ++derived;
    std::vector<uint32_t> forward;
    for (uint32_t i = 0; i <= graph.outputs().size(); ++i) forward.push_back(i);
    for (const Storage& storage :
         {Storage{.leaves_out_cheap = true},
          Storage{.leaves_out_cheap = true, .share = 0.67, .parts = 2}, Storage{.share = 0.5}}) {
      const Result<Rematerialized> made = rematerialize(*plain, forward, storage);
      ASSERT_TRUE(made.ok()) << made.error().to_string() << print(*plain);
      again += made->nodes;
      expect_same(*plain, made->graph, seed);
    }
  }
  EXPECT_GT(derived, 50);
  EXPECT_GT(again, 300u);
}

}  // namespace
}  // namespace hone::HONE_FILE
