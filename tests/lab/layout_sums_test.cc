#include "lab/models/layout_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "lab/models/judge_graphs.h"
#include "learn/ranking.h"
#include "tests/lab/tpu_testing.h"

namespace hone::HONE_FILE {
namespace {

// Nodes with two columns, whose layouts each have a cost.
ConfiguredGraph assignments(size_t nodes, size_t count, double noise, uint64_t seed) {
  constexpr int64_t kLayouts = 4;
  Rng costs(7), rng(seed);
  std::vector<double> cost(nodes * kLayouts);
  for (double& each : cost) each = costs.uniform();
  ConfiguredGraph graph = {
      .program = "p", .graph = {}, .config_nodes = {}, .configs = {}, .times = {}};
  graph.configs.names = {"a", "b"};
  for (size_t n = 0; n < nodes; ++n) graph.config_nodes.push_back(static_cast<int32_t>(n));
  for (size_t i = 0; i < count; ++i) {
    double sum = noise * rng.uniform();
    for (size_t n = 0; n < nodes; ++n) {
      const int64_t layout = rng.between(0, kLayouts - 1);
      graph.configs.values.push_back(static_cast<float>(layout % 2));
      graph.configs.values.push_back(static_cast<float>(layout / 2));
      sum += cost[n * kLayouts + static_cast<size_t>(layout)];
    }
    graph.times.push_back(1e6 * std::exp(sum));
  }
  return graph;
}

TEST(LayoutSums, OrderOtherAssignmentsOfTheGraph) {
  const LayoutSums sums(assignments(12, 120, 0, 1));
  const ConfiguredGraph others = assignments(12, 60, 0, 2);
  EXPECT_GT(kendall_tau(sums.scores(others), others.times), 0.97);
}

// As many assignments as unknowns: without shrinkage noise would be met exactly (0.50).
TEST(LayoutSums, DoNotTakeNoiseForCosts) {
  constexpr uint64_t kSeeds = 10;
  double tau = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const LayoutSums sums(assignments(12, 40, 1, seed + 1));
    const ConfiguredGraph others = assignments(12, 60, 0, 100);
    tau += kendall_tau(sums.scores(others), others.times) / kSeeds;
  }
  EXPECT_GT(tau, 0.58);
}

TEST(LayoutSums, CountAShareOfThePrice) {
  // Ten assignments say little of 48 layouts.
  ConfiguredGraph few = assignments(12, 10, 0, 1), others = assignments(12, 60, 0, 2);
  const auto tau = [&] { return kendall_tau(LayoutSums(few).scores(others), others.times); };
  const double without = tau();
  for (ConfiguredGraph* graph : {&few, &others})
    for (double time : graph->times)
      graph->besides.priced.push_back(static_cast<float>(std::sqrt(time)));
  EXPECT_GT(tau(), without + 0.2);
  // Equal prices tell nothing.
  std::ranges::fill(few.besides.priced, 5.0F);
  EXPECT_EQ(tau(), without);
}

TEST(LayoutSums, KnowNothingOfLayoutsThatTheyHaveNotSeen) {
  ConfiguredGraph graph = assignments(2, 10, 0, 1);
  const LayoutSums sums(graph);
  std::ranges::fill(graph.configs.values, 9.0F);
  EXPECT_THAT(sums.scores(graph), testing::Each(0.0));
}

// The target of 'hone eval' for the measured module: 0.9.
TEST(LayoutSums, TellSlowLayoutsOfATpuFromFastOnes) {
  const auto file = tpu::measured_file("module_tuning_data_layout.pb");
  HONE_NEED_MEASURED(file);
  const ConfiguredGraph module = load_graphs(file).value()[0];
  double area = 0;
  constexpr uint64_t kSplits = 5;
  for (uint64_t s = 0; s < kSplits; ++s) {
    const DividedConfigs divided = divided_configs(module, s).value();
    area += area_under_curve(LayoutSums(divided.known).scores(divided.unseen), divided.is_slow);
  }
  EXPECT_GT(area / kSplits, 0.9);
}

}  // namespace
}  // namespace hone::HONE_FILE
