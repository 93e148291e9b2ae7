#include "search/pipeline_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/rng.h"
#include "search/pipeline.h"
#include "search/pipeline_layers.h"
#include "tests/base/says_testing.h"
#include "tests/search/pipeline_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// ---- Stages -------------------------------------------------------------------------------------

// Some stages have no way, others several: the faster ones hold more.
StageTable random_table(Rng& rng, int layers, int devices) {
  StageTable table = {.layers = layers, .memory = rng.between(0, 2) * 10};
  for (int first = 0; first < layers; ++first)
    for (int end = first + 1; end <= layers; ++end)
      for (int n = 1; n <= devices; n *= 2) {
        if (rng.below(8) == 0) continue;
        std::vector<StageWay>& ways = table.ways[{first, end, n}];
        for (int64_t i = 0, count = rng.between(1, 2); i < count; ++i)
          ways.push_back({static_cast<double>(rng.between(1, 9) + 2 * i),
                          rng.between(1, 8) / (1 + i), rng.between(0, 4) / (1 + i)});
      }
  return table;
}

// All ways to divide the layers and the devices.
double best_by_trying(const StageTable& table, int devices, int micro_batches, int stages,
                      StageDevices use) {
  double best = INFINITY;
  std::vector<LayerStage> chosen;
  const std::function<void(int, int)> go = [&](int first, int left) {
    if (std::ssize(chosen) == stages) {
      if (first == table.layers && (left == 0 || use == StageDevices::some))
        best = std::min(best, step_seconds(table, chosen, micro_batches));
      return;
    }
    for (const auto& [key, ways] : table.ways) {
      const auto [begin, end, n] = key;
      if (begin != first || n > left) continue;
      for (int way = 0; way < std::ssize(ways); ++way) {
        const LayerStage stage = {first, end, n, way};
        if (!table.fits(stage, stages - static_cast<int>(chosen.size()) - 1, micro_batches))
          continue;
        chosen.push_back(stage);
        go(end, left - n);
        chosen.pop_back();
      }
    }
  };
  go(0, devices);
  return best;
}

TEST(PipelineStages, AreTheBestOfAll) {
  Rng rng(3);
  int found = 0;
  for (int i = 0; i < 60; ++i) {
    const auto layers = static_cast<int>(rng.between(1, 5));
    const auto devices = static_cast<int>(rng.between(1, 5));
    const auto batches = static_cast<int>(rng.between(1, 8));
    const StageTable table = random_table(rng, layers, devices);
    const StageDevices use = rng.below(2) == 0 ? StageDevices::all : StageDevices::some;
    for (int stages = 1; stages <= std::min(layers, devices); ++stages) {
      const std::vector<StageChoice> made = best_stages(table, devices, batches, stages, use);
      const double want = best_by_trying(table, devices, batches, stages, use);
      ASSERT_EQ(made.empty(), std::isinf(want)) << i << " " << stages;
      if (made.empty()) continue;
      EXPECT_NEAR(made[0].seconds, want, 1e-9) << i << " " << stages;
      ++found;
    }
  }
  EXPECT_GT(found, 60);
}

TEST(PipelineStages, LayersCutWhereFewBytesCross) {
  // Items 0 1 | 2 3: little crosses in the middle.
  std::vector<std::vector<double>> received(5, std::vector<double>(6, 100));
  for (auto& row : received[0]) row = 0;
  received[2] = {1, 1, 1, 1, 1, 1};
  EXPECT_THAT(clustered({1, 1, 1, 1}, received, 2), testing::ElementsAre(2, 4));
  EXPECT_THAT(clustered({1}, {{0, 0, 0}, {0, 0, 0}}, 3), testing::ElementsAre(1));
}

// Two hosts of two devices: a stage of two takes one host, and those of one what is left.
TEST(PipelineStages, LieWithinAHostThatHoldsThem) {
  using testing::ElementsAre;
  const System hosts = system_of("tree:2x2");
  const std::vector<LayerStage> stages = {{0, 1, 1}, {1, 2, 2}, {2, 3, 1}};
  EXPECT_THAT(devices_in_order(stages),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3)));
  EXPECT_THAT(devices_in_groups(stages, hosts),
              ElementsAre(ElementsAre(2), ElementsAre(0, 1), ElementsAre(3)));
  // No host has three devices.
  EXPECT_THAT(devices_in_groups({{0, 1, 3}, {1, 2, 1}}, hosts),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  // Four are in no host, and there is no room for five.
  EXPECT_THAT(devices_in_groups({{0, 1, 4}}, hosts), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_TRUE(devices_in_groups({{0, 1, 4}, {1, 2, 1}}, hosts).empty());
}

// ---- Schedules ----------------------------------------------------------------------------------

PipelineShape shape_of(int32_t devices, int32_t stages, int32_t batches) {
  PipelineShape shape = {.micro_batches = batches};
  for (int32_t s = 0; s < stages; ++s) shape.devices_of.push_back({s % devices});
  return shape;
}

// There are p stages and m micro-batches, forward 1 s and backward 2 s. A device idles for as long
// as p - 1 micro-batches take, or half of that if it has two stages.
TEST(PipelineSchedules, IdleAsTheFormulasSay) {
  for (const int32_t p : {2, 3, 4})
    for (const int32_t m : {p, 2 * p, 4 * p}) {
      const std::vector<StageFacts> stages(static_cast<size_t>(p),
                                           {.forward = 1, .backward = 2, .kept = 10});
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward}) {
        const PipelineTimes times =
            simulate_pipeline(shape_of(p, p, m), schedule, stages, fast_ring(p)).value();
        EXPECT_NEAR(times.seconds, 3.0 * (m + p - 1), 1e-6) << name(schedule) << p << " " << m;
        for (int32_t i = 0; i < p; ++i)
          EXPECT_EQ(times.memory[static_cast<size_t>(i)],
                    10 * (schedule == PipelineSchedule::gpipe ? m : std::min(m, p - i)))
              << name(schedule) << " " << p << " " << m << " " << i;
      }
      const std::vector<StageFacts> halves(static_cast<size_t>(2 * p),
                                           {.forward = 0.5, .backward = 1, .kept = 5});
      const PipelineTimes times =
          simulate_pipeline(shape_of(p, 2 * p, m), PipelineSchedule::interleaved, halves,
                            fast_ring(p))
              .value();
      EXPECT_NEAR(times.seconds, 3.0 * m + 3.0 * (p - 1) / 2, 1e-6) << p << " " << m;
    }
}

TEST(PipelineSchedules, RefuseWhatDoesNotInterleave) {
  const std::vector<StageFacts> stages(4);
  EXPECT_THAT(
      simulate_pipeline(shape_of(2, 4, 3), PipelineSchedule::interleaved, stages, fast_ring(2)),
      refuses(ErrorCode::unsupported, "3 micro-batches do not interleave"));
  EXPECT_THAT(simulate_pipeline(shape_of(2, 4, 4), PipelineSchedule::gpipe, stages, fast_ring(2)),
              refuses(ErrorCode::unsupported, "several stages ... interleaved has"));
}

}  // namespace
}  // namespace hone::HONE_FILE
