#include "place/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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
  const PlaceTimeline timeline = judge.timeline(placement).value();
  std::vector<DeviceArena> arenas;
  for (uint32_t d = 0; d < problem.devices(); ++d)
    arenas.push_back(device_arena(judge, placement, timeline, d).value());
  return arenas;
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

// The buffers of one device by the timeline alone. Moments are the starts of buffers.
MemoryProblem lives_on(const PlaceProblem& problem, const DevicePlacement& placement,
                       const Timeline& times, uint32_t device) {
  struct Life {
    Ticks begin, end;
    int64_t units;
  };
  std::vector<Life> lives;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i)
    if (placement.device[i] == device && problem.nodes[i].scratch > 0)
      lives.push_back({times.start(i), times.end(i), problem.nodes[i].scratch / kUnit});
  auto message = static_cast<uint32_t>(problem.nodes.size());
  for (const PlaceTensor& tensor : problem.tensors) {
    const uint32_t from = placement.device[tensor.maker];
    const auto last_use_on = [&](uint32_t d) {
      Ticks last = -1;  // none
      for (const uint32_t user : tensor.users)
        if (placement.device[user] == d) last = std::max(last, times.end(user));
      return last;
    };
    Ticks end = std::max(times.end(tensor.maker), last_use_on(from));
    for (uint32_t d = 0; d < problem.devices(); ++d) {
      if (d == from || last_use_on(d) < 0) continue;
      if (d == device) lives.push_back({times.start(message), last_use_on(d), tensor.held / kUnit});
      end = std::max(end, times.end(message++));
    }
    if (from == device) lives.push_back({times.start(tensor.maker), end, tensor.held / kUnit});
  }
  MemoryProblem found;
  for (const Life& life : lives) {
    const auto moment = [&](Ticks at) {
      std::set<Ticks> before;
      for (const Life& other : lives)
        if (other.begin < at) before.insert(other.begin);
      return std::ssize(before);
    };
    if (life.units > 0)
      found.buffers.push_back(
          {.begin = moment(life.begin), .end = moment(life.end), .size = life.units});
  }
  return found;
}

// On one chip and on several, whose links are so slow that messages pass while others compute.
TEST(Arena, FitsWhereSomeOffsetsDo) {
  int64_t fitting = 0, above_peak = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    Rng rng(seed);
    const int64_t room = rng.between(3, 7);
    const auto chips = static_cast<uint32_t>(rng.between(1, 3));
    PlaceProblem problem = chip_nodes(7, 3, room * kUnit);
    for (PlaceNode& node : problem.nodes)
      if (rng.chance(0.2)) node.scratch = rng.between(1, 3) * kUnit;
    for (uint32_t i = 0; i + 1 < 7; ++i)
      problem.tensors.push_back({i,
                                 {static_cast<uint32_t>(rng.between(i + 1, std::min(i + 3U, 6U)))},
                                 rng.between(1, 4) * 1e6,
                                 rng.between(1, 3) * kUnit});
    DevicePlacement placement = all_on_first(problem);
    for (uint32_t& device : placement.device) device = static_cast<uint32_t>(rng.below(chips));
    const PlaceJudge judge(problem);
    const PlaceTimeline timeline = judge.timeline(placement).value();
    bool fits = true;
    for (uint32_t d = 0; d < 3; ++d) {
      const DeviceArena arena = device_arena(judge, placement, timeline, d).value();
      const MemoryProblem lives = lives_on(problem, placement, timeline.timeline, d);
      const int64_t least = BruteForce(lives).least_height().value();
      EXPECT_EQ(arena.fits(), least <= room) << seed;
      EXPECT_GE(arena.bytes, timeline.memory[d].peak) << seed;
      above_peak += arena.fits() && arena.bytes > timeline.memory[d].peak ? 1 : 0;
      fits = fits && least <= room;
    }
    EXPECT_EQ(check_arenas(judge, placement).ok(), fits) << seed;
    fitting += fits ? 1 : 0;
  }
  EXPECT_GT(fitting, 100);
  EXPECT_LT(fitting, 700);
  EXPECT_GT(above_peak, 0);
}

// While chip 1 waits, it sends the one tensor and receives the other.
TEST(Arena, HoldsWhatIsSentAndReceivedBetweenTwoNodes) {
  PlaceProblem problem = chip_nodes(5, 3, 3 * kUnit);
  problem.nodes[2].seconds = {10e-3};  // what the second node of chip 1 waits for, on chip 0
  problem.tensors = {{0, {4}, 5e6, 2 * kUnit},  // sent from 1 to 6 ms
                     {1, {3}, 3e6, 2 * kUnit},  // received from 1 to 4 ms
                     {2, {3}, 1e3, 0}};
  const DevicePlacement placement = {{1, 0, 0, 1, 2}, {}};
  const PlaceJudge judge(problem);
  EXPECT_EQ(judge.timeline(placement).value().memory[1].peak, 4 * kUnit);
  EXPECT_THAT(check_arenas(judge, placement),
              refuses(ErrorCode::limit, "device 1 takes 256 B, 64 B more than its 192 B"));
  problem.system.devices[0].memory_bytes += kUnit;
  EXPECT_TRUE(check_arenas(PlaceJudge(problem), placement).ok());
}

// Tensors lie behind the weights, at the next offset that is aligned.
TEST(Arena, AlignsWhatLiesBehindWeights) {
  PlaceProblem problem = chip_nodes(2, 1, kUnit + 1);
  problem.nodes[0].held = 1;
  problem.tensors = {{0, {1}, 1000, kUnit}};
  EXPECT_FALSE(check_arenas(PlaceJudge(problem), all_on_first(problem)).ok());
  problem.system.devices[0].memory_bytes = 2 * kUnit;
  EXPECT_TRUE(check_arenas(PlaceJudge(problem), all_on_first(problem)).ok());
}

// More buffers than the planner searches: that no arena was found proves nothing.
TEST(Arena, TellsASearchThatEndedFromWhatIsTooMuch) {
  const PlaceProblem once = holey_tensors(1, 6 * kUnit);
  PlaceProblem problem = once;
  const auto nodes = static_cast<uint32_t>(once.nodes.size());
  for (uint32_t copy = 1; copy < 600; ++copy) {
    const uint32_t first = copy * nodes;
    for (uint32_t i = 0; i < nodes; ++i)
      problem.nodes.push_back({.id = first + i, .name = "", .seconds = {1e-3}});
    for (PlaceTensor tensor : once.tensors) {
      tensor.maker += first;
      for (uint32_t& user : tensor.users) user += first;
      problem.tensors.push_back(std::move(tensor));
    }
    problem.tensors.push_back({first - 1, {first}, 0, 0});
  }
  const PlaceJudge judge(problem);
  const DeviceArena arena = arenas_of(problem, all_on_first(problem))[0];
  EXPECT_EQ(arena.verdict, MemoryVerdict::limit);
  EXPECT_EQ(arena.bytes, 6 * kUnit);
  EXPECT_FALSE(arena.nodes.empty());
  EXPECT_THAT(check_arenas(judge, all_on_first(problem)),
              refuses(ErrorCode::limit,
                      "no arena of device 0 was found within its 384 B ... 384 B are needed"));
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
  EXPECT_FALSE(full[0].fits());
  EXPECT_THAT(full[0].nodes, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace hone::HONE_FILE
