#include "cost/analytic_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kThreads = 4;

Target target() { return parse_target(kSampleTarget, "t").value(); }

// All nodes of a graph as one kernel.
KernelBody body(std::string_view text) {
  const Graph graph = prepare(parse_graph(text).value()).value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter && graph.opcode(n) != Opcode::constant)
      nodes.push_back(n);
  return body_of(graph, nodes, {});
}

constexpr std::string_view kChains[] = {
    R"(graph @attention(%q: f32[2, 24, 16], %k: f32[2, 24, 16], %v: f32[2, 24, 16])
    -> f32[2, 24, 16] {
  %s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
  %p = softmax %s {axis = 2}
  %y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %y
})",
    R"(graph @products(%x: f32[40, 16], %w: f32[16, 48], %v: f32[48, 24]) -> f32[40, 24] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %t = tanh %h
  %y = dot %t, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})",
    R"(graph @normed(%x: f32[8, 20, 16], %w: f32[16, 16]) -> f32[8, 20, 16] {
  %s = softmax %x {axis = 2}
  %y = dot %s, %w {lhs_contract = [2], rhs_contract = [0]}
  %z = exp %y
  return %z
})"};

// Some that check_schedule() accepts.
std::vector<Schedule> random_chains(const KernelBody& body, size_t count) {
  Rng rng(7);
  std::vector<Schedule> chains;
  while (chains.size() < count) {
    Schedule schedule = random_schedule(body, target(), rng);
    if (schedule.algorithm() == Algorithm::chain) chains.push_back(std::move(schedule));
  }
  return chains;
}

// The values of a stage: what it reads from others, or leaves for them.
std::vector<ValueId> passed_on(const KernelBody& body, const std::vector<Stage>& stages, size_t s) {
  const Graph& graph = stages[s].body.graph;
  std::vector<ValueId> values;
  for (size_t i = 0; i < stages[s].sources.size(); ++i)
    if (stages[s].sources[i] >= body.inputs.size()) values.push_back(graph.inputs()[i]);
  if (s + 1 < stages.size()) values.push_back(graph.outputs()[0]);
  return values;
}

// The time of a chain, from its stages as they are: blocks of one size after those of another.
double seconds_by_stage(const KernelBody& body, Schedule chain, size_t from = 0, double blocks = 1,
                        double divided = 1) {
  if (from == chain.order.size()) {
    double block = 0;
    const std::vector<Stage> stages = stages_of(body, chain).value();
    for (size_t s = 0; s < stages.size(); ++s)
      block += KernelPrice(KernelFacts(stages[s].body), target(), {}, 1, stages[s].body.window,
                           passed_on(body, stages, s))
                   .seconds(chain.get<ChainFields>().stages[s]);
    const double shares = std::ceil(divided / static_cast<double>(kThreads));
    return block * blocks * shares / divided + (chain.threads > 0 ? target().fork_join : 0);
  }
  const int dim = chain.order[from];
  const int64_t points = block_points(body, chain, dim);
  const int64_t extent = body.graph.type(body.graph.outputs()[0]).dim(dim).value();
  double seconds = 0;
  for (const auto& [size, count] : {std::pair(points, extent / points), {extent % points, 1L}}) {
    if (size == 0) continue;
    for (Tile& block : chain.get<ChainFields>().block)
      if (block.dim == dim) block.count = size;
    const double each = static_cast<double>(count);
    seconds += seconds_by_stage(body, chain, from + 1, blocks * each,
                                static_cast<int>(from) < chain.threads ? divided * each : divided);
  }
  return seconds;
}

TEST(AnalyticKernel, OfAChainIsThatOfItsStagesWhateverWasPricedBefore) {
  for (std::string_view text : kChains) {
    const KernelBody kernel = body(text);
    const std::vector<Schedule> chains = random_chains(kernel, 150);
    std::set<std::vector<int64_t>> kept;
    AnalyticKernel price(std::make_shared<KernelFacts>(kernel), target(), {}, kThreads);
    for (int round = 0; round < 2; ++round) {
      for (const Schedule& chain : chains) {
        kept.insert(chain.get<ChainFields>().keep);
        ASSERT_NEAR(price.seconds(chain) / seconds_by_stage(kernel, chain), 1, 1e-12) << text;
      }
    }
    EXPECT_GT(kept.size(), 1U) << text;  // they are cut in several ways
  }
}

// More than are kept.
TEST(AnalyticKernel, ForgetsWhatItHasNoRoomFor) {
  const KernelBody kernel = body(
      "graph @g(%x: f32[4000, 4], %w: f32[4, 4], %v: f32[4, 4]) -> f32[4000, 4] { "
      "%h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} "
      "%y = dot %h, %v {lhs_contract = [1], rhs_contract = [0]} return %y }");
  AnalyticKernel price(std::make_shared<KernelFacts>(kernel), target(), {}, kThreads);
  Schedule chain = simplest_chain(kernel).value();
  const double first = price.seconds(chain);
  for (int64_t points = 2; points < 1500; ++points) {
    chain.get<ChainFields>().block[0].count = points;
    EXPECT_GT(price.seconds(chain), 0);
  }
  EXPECT_EQ(price.seconds(chain), seconds_by_stage(kernel, chain));
  chain.get<ChainFields>().block[0].count = 1;
  EXPECT_EQ(price.seconds(chain), first);
}

// A depthwise conv and the 1x1 conv behind it, of images that the second cache does not hold.
constexpr std::string_view kSeparable =
    "graph @g(%x: f32[1, 64, 160, 160], %w: f32[64, 1, 3, 3], %v: f32[64, 64, 1, 1])"
    "    -> f32[1, 64, 160, 160] { "
    "%d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 64} "
    "%y = conv %d, %v return %y }";

Schedule rows_of_images(int64_t rows) {
  Schedule stage = plain_nest(4);
  stage.lanes = {{3, 16}};
  return {.order = {2},
          .own = ChainFields{.block = {{2, rows}}, .keep = {0}, .stages = {stage, stage}}};
}

TEST(AnalyticKernel, WhatStagesPassOnDoesNotComeFromBehindTheCacheThatHoldsIt) {
  const KernelBody kernel = body(kSeparable);
  const std::vector<Stage> stages = stages_of(kernel, rows_of_images(4)).value();
  Target without_first = target();
  without_first.caches.erase(without_first.caches.begin());
  const auto memory = [&](std::span<const int64_t> window, std::span<const ValueId> held) {
    const KernelFacts facts(stages[1].body);
    return KernelPrice(facts, without_first, {}, 1, window, held).terms(plain_nest(4)).memory;
  };
  const std::vector<ValueId> held = passed_on(kernel, stages, 1);
  const std::vector<int64_t> few = {1, 64, 4, 160}, many = {1, 64, 80, 160};
  EXPECT_LT(memory(few, held), 0.7 * memory(few, {}));
  EXPECT_EQ(memory(many, held), memory(many, {}));  // too much to hold
}

TEST(AnalyticKernel, WindowsOfABlockThatOverlapCountOnce) {
  const KernelBody kernel = body(kSeparable);
  const Stage depthwise = stages_of(kernel, rows_of_images(4)).value()[0];
  const KernelFacts facts(depthwise.body);
  const std::vector<int64_t> window = {1, 64, 4, 160};
  const Schedule schedule = rows_of_images(4).get<ChainFields>().stages[0];
  const double memory = KernelPrice(facts, target(), {}, 1, window).terms(schedule).memory;
  // Four rows read six and write four, a point of each of them once.
  const double bytes = 4.0 * 64 * 160 * (6 + 4);
  EXPECT_NEAR(memory, Prices().third_cache * bytes / target().caches[2].bytes_per_second,
              0.1 * memory);
}

TEST(AnalyticKernel, AChainTakesAtLeastWhatMemoryDoes) {
  const KernelBody kernel = body(kSeparable);
  Target small = target();
  small.caches.resize(2);
  AnalyticKernel in_memory(std::make_shared<KernelFacts>(kernel), small, {}, 1);
  small.memory_one_core = small.memory_all_cores = 1e6;
  AnalyticKernel slow(std::make_shared<KernelFacts>(kernel), small, {}, 1);
  const double bytes = 2 * 4.0 * 64 * 160 * 160;
  EXPECT_GT(slow.seconds(rows_of_images(4)), Prices().memory * bytes / 1e6);
  EXPECT_LT(in_memory.seconds(rows_of_images(4)), Prices().memory * bytes / 1e6);
}

TEST(AnalyticKernel, OfAnythingElseIsThatOfTheKernel) {
  const KernelBody kernel = body(kChains[1]);
  const KernelPrice whole(KernelFacts(kernel), target(), {}, kThreads);
  AnalyticKernel price(std::make_shared<KernelFacts>(kernel), target(), {}, kThreads);
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const Schedule schedule = random_schedule(kernel, target(), rng);
    const double seconds = price.seconds(schedule);
    EXPECT_EQ(AnalyticCost(target()).launch(kernel, schedule, kThreads), seconds);
    if (schedule.algorithm() != Algorithm::chain) EXPECT_EQ(whole.seconds(schedule), seconds);
  }
}

TEST(AnalyticKernel, TakesOtherCoefficientsAsIfItHadBegunWithThem) {
  Prices other;
  other.near_vectors = 0;  // decides about arrays before there is a schedule
  other.sum_latency = 5;
  other.start = 11;
  const KernelBody rows = body(
      "graph @g(%x: f32[64, 9]) -> f32[9, 64] { %y = transpose %x {permutation = [1, 0]} "
      "%z = exp %y return %z }");
  for (const KernelBody& kernel : {body(kChains[0]), body(kChains[1]), rows}) {
    const auto facts = std::make_shared<KernelFacts>(kernel);
    AnalyticKernel price(facts, target(), {}, kThreads);
    Rng rng(11);
    for (int i = 0; i < 100; ++i) {
      const Schedule schedule = random_schedule(kernel, target(), rng);
      const double before = price.seconds(schedule);
      price.reprice(other);
      EXPECT_EQ(price.seconds(schedule),
                AnalyticKernel(facts, target(), other, kThreads).seconds(schedule));
      price.reprice({});
      EXPECT_EQ(price.seconds(schedule), before);
    }
  }
}

TEST(AnalyticKernel, AloneTakesChains) {
  const KernelBody kernel = body(kChains[1]);
  const KernelPrice whole(KernelFacts(kernel), target(), {}, kThreads);
  EXPECT_THROW(whole.seconds(simplest_chain(kernel).value()), InternalError);
}

}  // namespace
}  // namespace hone::HONE_FILE
