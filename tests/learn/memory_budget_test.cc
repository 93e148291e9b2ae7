#include "learn/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/reference/evaluate.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/training_step.h"
#include "tests/base/says_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using Kind = MemoryBudget::Kind;

constexpr uint32_t kLoss[] = {0};

// Layers, of which each stores much beside what its weights take.
Graph deep_step(int layers = 24) {
  Builder b("deep");
  Value x = b.parameter("x", DType::f32, {256, 16});
  for (int i = 0; i < layers; ++i)
    x = tanh(matmul(x, b.constant(Tensor::from_reals(Type::get(DType::f32, {16, 16}),
                                                     std::vector<double>(256, 0.05)),
                                  "w" + std::to_string(i))));
  const Graph model = b.finish({x.named("y")}).value();
  return training_step(model, {.optimizer = find_optimizer("adam").value()}).value().graph;
}

SmallerStep smaller(const Graph& step, std::string_view budget) {
  Result<SmallerStep> made =
      within_budget(step, kLoss, parse_memory_budget(budget).value(), host_target().value());
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? *std::move(made) : SmallerStep();
}

TEST(MemoryBudget, ReadsAmountsAndShares) {
  EXPECT_EQ(parse_memory_budget("all").value(), MemoryBudget());
  EXPECT_EQ(parse_memory_budget("cheap")->kind, Kind::cheap);
  EXPECT_EQ(parse_memory_budget("1500000").value(),
            (MemoryBudget{.kind = Kind::bytes, .bytes = 1'500'000}));
  EXPECT_EQ(parse_memory_budget("1.5KiB")->bytes, 1536);
  EXPECT_EQ(parse_memory_budget("2MB")->bytes, 2'000'000);
  EXPECT_EQ(parse_memory_budget("50%").value(), (MemoryBudget{.kind = Kind::share, .share = 0.5}));
  for (const std::string_view text :
       {"", "half", "-3", "0", "nan", "inf", "200%", "%", "3XB", "1e30"})
    EXPECT_THAT(parse_memory_budget(text).error().to_string(), says("amount of memory")) << text;
}

TEST(MemoryBudget, HalfTheMemoryGivesTheSameNumbers) {
  const Graph step = deep_step();
  const SmallerStep half = smaller(step, "50%");
  EXPECT_LE(half.bytes, half.bytes_all / 2);
  EXPECT_GT(half.nodes, 0u);
  const std::vector<Tensor> inputs = random_graph_inputs(step, 1);
  const EvalOptions rounded = {.numerics = Numerics::rounded};
  const std::vector<Tensor> expected = evaluate(step, inputs, rounded).value();
  const std::vector<Tensor> actual = evaluate(half.graph, inputs, rounded).value();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(actual[i].same_bytes(expected[i])) << i;
}

TEST(MemoryBudget, StoresAllWhereThereIsRoom) {
  const Graph step = deep_step();
  EXPECT_EQ(smaller(step, "100%").nodes, 0u);
  EXPECT_EQ(smaller(step, "1GiB").nodes, 0u);
  const SmallerStep cheap = smaller(step, "cheap");
  EXPECT_LE(cheap.bytes, cheap.bytes_all);
}

TEST(MemoryBudget, SaysTheLeastPossible) {
  const Result<SmallerStep> made = within_budget(
      deep_step(6), kLoss, parse_memory_budget("1KiB").value(), host_target().value());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::limit);
  EXPECT_THAT(made.error().to_string(), says("1.0 KiB ... least"));
}

}  // namespace
}  // namespace hone::HONE_FILE
