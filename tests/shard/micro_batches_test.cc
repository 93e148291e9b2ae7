#include "shard/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "grad/grad.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/batch_inputs.h"
#include "tests/base/says_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }

BatchInputs batch_of(const Graph& graph) {
  return batch_inputs(graph, graph.input_types()).value();
}

constexpr std::string_view kLoss =
    "graph @mlp(%x: f32[8, 6], %v: f32[6, 4], %w: f32[4, 2]) -> f32[] {\n"
    "  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %a = tanh %h\n"
    "  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %e = mul %y, %y\n"
    "  %l = reduce %e {kind = sum, axes = [0, 1]}\n"
    "  return %l\n}\n";

// Empty: the micro-batches together are the whole batch.
std::string judge_parts(const Graph& graph, const BatchInputs& batch, int64_t count,
                        uint64_t seed) {
  const Result<MicroBatches> made = micro_batches(graph, batch, count);
  if (!made.ok()) return made.error().to_string();
  if (made->origins.size() != made->graph.node_count()) return "an origin is missing";
  const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
  const Result<std::vector<Tensor>> want = evaluate(graph, inputs);
  if (!want.ok()) return "";  // the graph itself cannot run
  const Result<std::vector<Tensor>> have = evaluate(made->graph, inputs);
  if (!have.ok()) return have.error().to_string();
  return tested::difference(*have, *want, 1e-4);
}

TEST(MicroBatches, AddUpTheGradientsOfALoss) {
  const Graph loss = graph_of(kLoss);
  const Graph step = grad(loss, 0, {false, true, true}).value();
  for (const int64_t count : {1, 2, 3, 4, 8})
    EXPECT_EQ(judge_parts(step, batch_of(step), count, 1), "") << count;
}

// A node that is the same for all rows is computed once.
TEST(MicroBatches, ShareWhatHasNoRows) {
  const Graph graph = graph_of(
      "graph @g(%x: f32[8, 4], %w: f32[4]) -> f32[8, 4] {\n"
      "  %s = exp %w\n"
      "  %b = broadcast %s {dims = [8, 4], map = [1]}\n"
      "  %y = mul %x, %b\n"
      "  return %y\n}\n");
  const MicroBatches made = micro_batches(graph, batch_of(graph), 4).value();
  int exps = 0, muls = 0;
  for (const NodeId n : made.graph.nodes()) {
    exps += made.graph.opcode(n) == Opcode::exp ? 1 : 0;
    muls += made.graph.opcode(n) == Opcode::mul ? 1 : 0;
  }
  EXPECT_EQ(exps, 1);
  EXPECT_EQ(muls, 4);
  EXPECT_EQ(judge_parts(graph, batch_of(graph), 4, 1), "");
}

TEST(MicroBatches, RefuseWhatNeedsAllRowsInBetween) {
  const Graph norm = graph_of(
      "graph @norm(%x: f32[8, 4]) -> f32[8, 4] {\n"
      "  %s = reduce %x {kind = sum, axes = [0]}\n"
      "  %b = broadcast %s {dims = [8, 4], map = [1]}\n"
      "  %y = sub %x, %b\n"
      "  return %y\n}\n");
  EXPECT_THAT(micro_batches(norm, batch_of(norm), 2),
              refuses(ErrorCode::unsupported, "sum over the whole batch"));
  EXPECT_EQ(judge_parts(norm, batch_of(norm), 1, 1), "");
  EXPECT_THAT(micro_batches(norm, batch_of(norm), 9), refuses(ErrorCode::usage, "8 rows"));
  EXPECT_THAT(micro_batches(norm, batch_of(norm), 0), refuses(ErrorCode::usage, "no 0 parts"));
}

// Random graphs, and their derivatives: what is not refused is right.
int judge_random(uint64_t first, uint64_t count) {
  int right = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = random_graph({.seed = seed,
                                      .min_steps = 2,
                                      .max_steps = 8,
                                      .max_elements = 1024,
                                      .max_dim = 8,
                                      .continuous = true});
    if (!graph.is_static()) continue;
    const Result<BatchInputs> batch = batch_inputs(graph, graph.input_types());
    if (!batch.ok() || batch->rows < 2) continue;
    Rng rng(seed);
    const int64_t parts = rng.between(2, std::min<int64_t>(batch->rows, 6));
    const Result<MicroBatches> made = micro_batches(graph, *batch, parts);
    if (!made.ok()) {
      EXPECT_EQ(made.error().code(), ErrorCode::unsupported)
          << "seed " << seed << ": " << made.error().to_string();
      continue;
    }
    EXPECT_EQ(judge_parts(graph, *batch, parts, seed), "")
        << "seed " << seed << ", " << parts << " parts\n"
        << print(graph);
    ++right;
  }
  return right;
}

TEST(MicroBatches, OfRandomGraphsComputeTheSame) { EXPECT_GT(judge_random(0, 400), 20); }
TEST(MicroBatches, DISABLED_SweepOfRandomGraphs) { judge_random(10000, 20000); }

}  // namespace
}  // namespace hone::HONE_FILE
