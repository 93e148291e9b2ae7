#include "place/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "place/partition_json.h"
#include "plan/planned.h"
#include "tests/alloc/brute_force_testing.h"
#include "tests/base/says_testing.h"
#include "tests/place/arena_testing.h"

// The memory of devices by the memory planner: against sums, against the peak, and against all
// offsets.

namespace hone::HONE_FILE {
namespace {

using tested::chip_nodes;
using tested::holey_tensors;
using tested::refuses;
using testing::Each;
using testing::ElementsAre;
using testing::Field;

constexpr int64_t kUnit = kOffsetAlignment;

std::vector<DeviceArena> arenas_of(const PlaceProblem& problem, const DevicePlacement& placement) {
  const PlaceJudge judge(problem);
  return device_arenas(judge, placement, judge.timeline(placement).value()).value();
}

DevicePlacement all_on_first(const PlaceProblem& problem) {
  return {std::vector<uint32_t>(problem.nodes.size(), 0), {}};
}

TEST(Arena, RefusesTensorsThatTheSumOfNodesDoesNotSee) {
  PlaceProblem problem = chip_nodes(3, 2, 10 * kUnit);
  for (PlaceNode& node : problem.nodes) node.held = 2 * kUnit;
  problem.tensors = {{0, {1, 2}, 1000, 3 * kUnit}, {1, {2}, 1000, 2 * kUnit}};
  const PlaceJudge judge(problem);
  EXPECT_THAT(check_arenas(judge, all_on_first(problem)),
              refuses(ErrorCode::limit, "device 0 takes 704 B, 64 B more than its 640 B"));
  EXPECT_TRUE(check_arenas(judge, {{0, 0, 1}, {}}).ok());
}

TEST(Arena, TakesTensorsWhoseLivesDoNotMeet) {
  PlaceProblem problem = chip_nodes(6, 2, 5 * kUnit);
  for (uint32_t i = 0; i + 1 < 6; ++i) problem.tensors.push_back({i, {i + 1}, 1000, 2 * kUnit});
  problem.nodes[0].held = kUnit;
  // Ten units of tensors, of which four are there at once.
  EXPECT_TRUE(check_arenas(PlaceJudge(problem), all_on_first(problem)).ok());
  EXPECT_EQ(arenas_of(problem, all_on_first(problem))[0].bytes, 5 * kUnit);
  problem.system.devices[0].memory_bytes -= 1;
  EXPECT_THAT(check_arenas(PlaceJudge(problem), all_on_first(problem)),
              refuses(ErrorCode::limit, "device 0"));
}

TEST(Arena, RefusesHolesThatThePeakDoesNotSee) {
  const PlaceProblem problem = holey_tensors(2, 6 * kUnit);
  const PlaceJudge judge(problem);
  const DevicePlacement placement = all_on_first(problem);
  const PlaceTimeline timeline = judge.timeline(placement).value();
  EXPECT_EQ(timeline.memory[0].peak, 6 * kUnit);
  EXPECT_TRUE(judge.check_memory(placement, timeline).ok());
  EXPECT_THAT(check_arenas(judge, placement), refuses(ErrorCode::limit, "device 0 takes 448 B"));
  const PlaceProblem roomy = holey_tensors(2, 7 * kUnit);
  EXPECT_TRUE(check_arenas(PlaceJudge(roomy), placement).ok());
}

// Buffers of one device, by what its nodes do in their order.
MemoryProblem lives_on_one(const PlaceProblem& problem, const PlaceTimeline& timeline) {
  const auto turn = [&](uint32_t node) {
    int64_t before = 0;
    for (uint32_t other = 0; other < problem.nodes.size(); ++other)
      before += timeline.start(other) < timeline.start(node) ? 1 : 0;
    return before;
  };
  MemoryProblem lives;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i)
    if (problem.nodes[i].scratch > 0)
      lives.buffers.push_back(
          {.begin = turn(i), .end = turn(i) + 1, .size = problem.nodes[i].scratch / kUnit});
  for (const PlaceTensor& tensor : problem.tensors) {
    int64_t end = 0;
    for (const uint32_t user : tensor.users) end = std::max(end, turn(user) + 1);
    lives.buffers.push_back({.begin = turn(tensor.maker), .end = end, .size = tensor.held / kUnit});
  }
  return lives;
}

TEST(Arena, FitsWhereSomeOffsetsDo) {
  int64_t fitting = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    const int64_t room = rng.between(3, 8);
    PlaceProblem problem = chip_nodes(7, 2, room * kUnit);
    for (PlaceNode& node : problem.nodes)
      if (rng.chance(0.2)) node.scratch = rng.between(1, 3) * kUnit;
    for (uint32_t i = 0; i + 1 < 7; ++i)
      problem.tensors.push_back({i,
                                 {static_cast<uint32_t>(rng.between(i + 1, std::min(i + 3U, 6U)))},
                                 1000,
                                 rng.between(1, 3) * kUnit});
    const PlaceJudge judge(problem);
    const DevicePlacement placement = all_on_first(problem);
    const PlaceTimeline timeline = judge.timeline(placement).value();
    const int64_t least = BruteForce(lives_on_one(problem, timeline)).least_height().value();
    EXPECT_EQ(check_arenas(judge, placement).ok(), least <= room) << seed;
    fitting += least <= room ? 1 : 0;
  }
  EXPECT_GT(fitting, 50);
  EXPECT_LT(fitting, 350);
}

TEST(Arena, HoldsACopyOnEachDeviceThatReceivesOne) {
  PlaceProblem problem = chip_nodes(4, 3, 100 * kUnit);
  problem.tensors = {{0, {1, 2, 3}, 1000, 3 * kUnit}};
  const std::vector<DeviceArena> arenas = arenas_of(problem, {{0, 0, 1, 2}, {}});
  EXPECT_THAT(arenas, Each(Field(&DeviceArena::bytes, 3 * kUnit)));
}

// A tensor stays where it was made until it has been sent, and what runs meanwhile needs room of
// its own.
TEST(Arena, KeepsATensorUntilItIsSent) {
  PlaceProblem problem = chip_nodes(3, 2, 100 * kUnit);
  problem.nodes[1].scratch = 2 * kUnit;
  problem.tensors = {{0, {2}, 1000, 3 * kUnit}, {0, {1}, 0, 0}};
  EXPECT_EQ(arenas_of(problem, {{0, 0, 1}, {}})[0].bytes, 5 * kUnit);
  problem.tensors[0].bytes = 0;
  EXPECT_EQ(arenas_of(problem, {{0, 0, 1}, {}})[0].bytes, 3 * kUnit);
}

// Such files have the sizes of nodes alone.
TEST(Arena, OfAGraphToSplitIsTheSumOfItsNodes) {
  const PlaceProblem problem =
      parse_partition_json(R"({"maxSizePerFPGA": 1000, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
        {"id": 0, "supportedOnFpga": true, "cpuLatency": 2, "fpgaLatency": 2, "size": 300},
        {"id": 1, "supportedOnFpga": true, "cpuLatency": 3, "fpgaLatency": 3, "size": 600},
        {"id": 2, "supportedOnFpga": true, "cpuLatency": 3, "fpgaLatency": 3, "size": 200}],
        "edges": [{"sourceId": 0, "destId": 1, "cost": 0.5, "size": 5000},
                  {"sourceId": 1, "destId": 2, "cost": 0.5, "size": 5000}]})",
                           "two.json")
          .value();
  const std::vector<DeviceArena> arenas = arenas_of(problem, {{0, 0, 1}, {}});
  EXPECT_THAT(arenas,
              ElementsAre(Field(&DeviceArena::bytes, 900), Field(&DeviceArena::bytes, 200)));
  const std::vector<DeviceArena> full = arenas_of(problem, {{0, 0, 0}, {}});
  EXPECT_FALSE(full[0].fits);
  EXPECT_THAT(full[0].nodes, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace hone::HONE_FILE
