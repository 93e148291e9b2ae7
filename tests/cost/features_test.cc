#include "cost/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cost/analytic_kernel.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

KernelBody body(std::string_view text) {
  const Graph graph = prepare(parse_graph(text).value()).value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter && graph.opcode(n) != Opcode::constant)
      nodes.push_back(n);
  return body_of(graph, nodes, {});
}

constexpr std::string_view kBodies[] = {
    R"(graph @product(%x: f32[40, 16], %w: f32[16, 48]) -> f32[40, 48] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = max %h, 0
  return %y
})",
    R"(graph @conv(%x: f32[1, 8, 12, 12], %w: f32[16, 8, 3, 3]) -> f32[1, 16, 12, 12] {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})",
    R"(graph @rows(%x: f32[20, 33]) -> f32[20, 33] {
  %y = softmax %x {axis = 1}
  return %y
})",
    R"(graph @attention(%q: f32[2, 24, 16], %k: f32[2, 24, 16], %v: f32[2, 24, 16])
    -> f32[2, 24, 16] {
  %s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
  %p = softmax %s {axis = 2}
  %y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %y
})"};

TEST(Features, HaveNamesOfTheirOwn) {
  const std::set<std::string_view> names(std::begin(kFeatureNames), std::end(kFeatureNames));
  EXPECT_EQ(names.size(), kFeatures);
  EXPECT_LT(kKernelFeatures, kFeatures);
  EXPECT_EQ(feature_version().size(), 16U);
}

TEST(Features, TakeLogarithmsByStraightLines) {
  EXPECT_EQ(log_feature(0), 0);
  EXPECT_EQ(log_feature(1), 1);
  EXPECT_EQ(log_feature(2), 1.5);
  EXPECT_EQ(log_feature(3), 2);
  EXPECT_EQ(log_feature(1023), 10);
  EXPECT_EQ(log_feature(-5), 0);
  EXPECT_EQ(log_feature(std::nan("")), 0);
  EXPECT_TRUE(std::isfinite(log_feature(INFINITY)));
}

// The price is that of an AnalyticKernel, and every number is one.
TEST(Features, ComeWithTheAnalyticPrice) {
  Rng rng(5);
  for (std::string_view text : kBodies) {
    const auto facts = std::make_shared<const KernelFacts>(body(text));
    for (int64_t threads : {1, 4}) {
      AnalyticKernel kernel(facts, target(), {}, threads);
      for (int i = 0; i < 200; ++i) {
        const Schedule schedule = random_schedule(facts->body, target(), rng);
        Features features;
        EXPECT_EQ(kernel.describe(schedule, features), kernel.seconds(schedule));
        for (size_t f = 0; f < kFeatures; ++f) {
          EXPECT_TRUE(std::isfinite(features.all()[f])) << kFeatureNames[f];
          EXPECT_GE(features.all()[f], 0) << kFeatureNames[f];
          if (f < kKernelFeatures)
            EXPECT_EQ(features.all()[f], kernel.of_kernel().all()[f]) << kFeatureNames[f];
        }
        const bool is_chain = schedule.algorithm() == Algorithm::chain;
        EXPECT_EQ(features.is_chain, is_chain ? 1 : 0);
      }
    }
  }
}

TEST(Features, SayWhatAScheduleDoes) {
  const auto facts = std::make_shared<const KernelFacts>(body(kBodies[0]));
  AnalyticKernel kernel(facts, target(), {}, 1);
  Schedule schedule{.order = {0, 1},
                    .lanes = {{1, 16}},
                    .unroll = {{0, 6}, {1, 2}},
                    .own = GemmFields{.pack_rhs = Packing::panels}};
  Features features;
  kernel.describe(schedule, features);
  EXPECT_EQ(features.is_dot, 1);
  EXPECT_EQ(features.is_gemm, 1);
  EXPECT_EQ(features.lanes, 4);  // log2(1 + 15)
  EXPECT_EQ(features.vectors, 1);
  EXPECT_EQ(features.lane_last, 1);
  EXPECT_EQ(features.rhs_panels, 1);
  EXPECT_EQ(features.lhs_panels, 0);
  EXPECT_EQ(features.unroll_dims, 2);
  EXPECT_EQ(features.unroll_tails, 2);  // 40 rows by 6, 48 columns by 32
  EXPECT_EQ(features.lane_tail, 0);
  EXPECT_GT(features.packed, 0);
  EXPECT_EQ(features.lane_excess, 0);
  EXPECT_EQ(features.divided_trips, 0);
  schedule.threads = 2;
  schedule.lanes = {{1, 64}};
  schedule.unroll = {{0, 6}};
  kernel.describe(schedule, features);
  EXPECT_EQ(features.lane_excess, 0.25);  // of 64 lanes, 48 have columns
  EXPECT_GT(features.divided_trips, 0);
}

// For a kernel, these tell sorts apart, the others sizes.
TEST(Features, OfAKernelBeginWithItsSort) {
  EXPECT_EQ(kFeatureNames[0], "is_dot");
  EXPECT_EQ(kFeatureNames[kSortFeatures - 1], "is_apart");
  EXPECT_EQ(kFeatureNames[kSortFeatures], "points");
  EXPECT_LT(kSortFeatures, kKernelFeatures);
}

}  // namespace
}  // namespace hone::HONE_FILE
