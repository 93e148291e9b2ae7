#include "place/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "place/blocks.h"
#include "place/state.h"
#include "place/task_text.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/place/random_problem.h"

// The placers: all keep the rules, those that claim to be exact are, and the same seed gives the
// same placement.

namespace hone::HONE_FILE {
namespace {

using tested::random_place_problem;
using tested::random_placement;
using tested::refuses;
using testing::ElementsAre;

// A random problem that passes the check.
PlaceProblem drawn(tested::PlaceDraw draw, Rng& rng) {
  for (;;) {
    PlaceProblem problem = random_place_problem(draw, rng);
    if (check(problem).ok()) return problem;
  }
}

TEST(Placers, GiveWhatFitsAndSayItsValue) {
  int found = 0, all = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = drawn({.nodes = 11,
                                        .devices = rng.between(1, 4),
                                        .memory = rng.chance(0.7),
                                        .backward = rng.chance(0.2)},
                                       rng);
    const PlaceJudge judge(problem);
    for (const PlaceGoal goal : kPlaceGoals)
      for (const PlacerRow& row : placers()) {
        const Result<PlaceResult> result = place(judge, {.goal = goal,
                                                         .by = std::string(row.name),
                                                         .seconds = 30,
                                                         .trials = 150,
                                                         .seed = seed});
        ++all;
        if (!result.ok()) {
          EXPECT_THAT(result, refuses(ErrorCode::limit, "memory")) << row.name << seed;
          continue;
        }
        ++found;
        ASSERT_TRUE(check(problem, result->placement).ok()) << row.name << seed;
        const PlaceTimeline timeline = judge.timeline(result->placement).value();
        EXPECT_TRUE(judge.check_memory(result->placement, timeline).ok()) << row.name;
        EXPECT_EQ(result->value, goal == PlaceGoal::step
                                     ? timeline.seconds()
                                     : std::ranges::max(judge.loads(result->placement)));
        EXPECT_GE(result->value * (1 + 1e-9), result->bounds.of(goal)) << row.name << seed;
        EXPECT_GE(result->gap(goal), -1e-9);
      }
  }
  EXPECT_GT(found, 3 * all / 4);
}

TEST(Placers, SearchesAreNeverWorseThanTheirStart) {
  Rng rng(7);
  const PlaceProblem problem = drawn({.nodes = 30, .devices = 4, .memory = false}, rng);
  const PlaceJudge judge(problem);
  const DevicePlacement start = random_placement(PlaceUnits(judge), rng);
  for (const PlaceGoal goal : kPlaceGoals)
    for (const std::string_view by : {"annealing", "chain", "genetic"}) {
      const PlaceResult result = place(judge, {.goal = goal,
                                               .by = std::string(by),
                                               .seconds = 60,
                                               .trials = 2000,
                                               .seed = 1,
                                               .start = start})
                                     .value();
      EXPECT_LT(result.value, judge.value(start, goal)) << by;  // a random one is easy to beat
    }
}

TEST(Placers, TheSameSeedGivesTheSame) {
  Rng rng(11);
  const PlaceProblem problem = drawn({.nodes = 12, .devices = 3}, rng);
  const PlaceJudge judge(problem);
  for (const PlacerRow& row : placers()) {
    const PlaceOptions options = {
        .by = std::string(row.name), .seconds = 120, .trials = 300, .seed = 5};
    const Result<PlaceResult> one = place(judge, options), two = place(judge, options);
    ASSERT_EQ(one.ok(), two.ok());
    if (one.ok()) EXPECT_EQ(one->placement, two->placement) << row.name;
  }
}

// ---- Contiguous splits -------------------------------------------------------------------------

// The least load of all contiguous splits: each block in turn goes to any device, in an order of
// devices that is tried whole. Sets that follow each other are ideals' differences.
double least_contiguous(const PlaceJudge& judge) {
  const PlaceUnits units(judge);
  const size_t blocks = units.blocks().size();
  const uint32_t devices = judge.problem().devices();
  std::vector<uint32_t> rank(blocks), order(devices);
  for (uint32_t d = 0; d < devices; ++d) order[d] = d;
  double best = kCannotRun;
  // rank[b]: how many devices come before; ranks rise along `before`.
  const std::function<void(size_t)> fill = [&](size_t b) {
    if (b == blocks) {
      std::vector<uint32_t> permuted = order;
      do {
        std::vector<uint32_t> of(units.units().size());
        bool can = true;
        for (size_t k = 0; k < blocks; ++k)
          for (const uint32_t u : units.blocks()[k]) {
            of[u] = permuted[rank[k]];
            can &= std::ranges::find(units.units()[u].devices, of[u]) !=
                   units.units()[u].devices.end();
          }
        if (can) best = std::min(best, judge.value(units.placement(of), PlaceGoal::load));
      } while (std::ranges::next_permutation(permuted).found);
      return;
    }
    uint32_t least = 0;
    for (const uint32_t before : units.before()[b]) least = std::max(least, rank[before]);
    for (rank[b] = least; rank[b] < devices; ++rank[b]) fill(b + 1);
  };
  fill(0);
  return best;
}

TEST(Ideals, FindsTheLeastLoadOfAllContiguousSplits) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = drawn({.nodes = static_cast<uint32_t>(rng.between(2, 7)),
                                        .devices = rng.between(1, 3),
                                        .memory = false,
                                        .backward = rng.chance(0.4)},
                                       rng);
    const PlaceJudge judge(problem);
    const double least = least_contiguous(judge);
    const PlaceResult result =
        place(judge, {.goal = PlaceGoal::load, .by = "ideals", .seconds = 60}).value();
    EXPECT_NEAR(result.value, least, 1e-9 * least) << seed;
    ++compared;
  }
  EXPECT_EQ(compared, 150);
}

TEST(Blocks, StandBehindWhatLeadsToThem) {
  // 0 -> 2 -> 1 -> 2, 3 -> 0
  const OrderedBlocks made = ordered_blocks({{2}, {2}, {1}, {0}});
  EXPECT_THAT(made.members, ElementsAre(ElementsAre(3), ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(made.before, ElementsAre(ElementsAre(), ElementsAre(0), ElementsAre(1)));
}

// ---- States ------------------------------------------------------------------------------------

TEST(PlaceState, KeepsTheValueThroughMovesAndBack) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem =
        drawn({.devices = rng.between(2, 4), .memory = rng.chance(0.5)}, rng);
    const PlaceJudge judge(problem);
    for (const PlaceGoal goal : kPlaceGoals) {
      const PlaceOptions options = {.goal = goal};
      PlaceRun run(judge, options);
      PlaceState state(run, random_placement(run.units(), rng));
      for (int step = 0; step < 30; ++step) {
        const DevicePlacement before = state.placement();
        const double value = state.value();
        const auto unit = static_cast<uint32_t>(rng.below(run.units().units().size()));
        std::vector<PlaceMove> moves = {{unit, rng.pick(run.units().units()[unit].devices)}};
        state.apply(moves);
        // Memory that tensors hold is counted by the judge alone, once it is offered.
        const double judged = judge.value(state.placement(), goal);
        if (state.value() != kCannotRun && judged != kCannotRun)
          EXPECT_NEAR(state.value(), judged, 1e-9) << seed;
        if (rng.chance(0.5)) continue;
        state.undo();
        EXPECT_EQ(state.placement(), before);
        EXPECT_EQ(state.value(), value);
      }
    }
  }
}

// ---- Limits ------------------------------------------------------------------------------------

TEST(Placers, SayHowMuchMemoryIsMissing) {
  PlaceProblem problem;
  problem.name = "tight";
  problem.system = task_system(2).value();
  problem.system.devices[0].memory_bytes = 1000;
  for (int64_t i = 0; i < 3; ++i)
    problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}, .held = 600});
  problem.nodes[2].held = 500;
  ASSERT_TRUE(check(problem).ok());  // 1700 of 2000, but no two fit one device
  EXPECT_THAT(place(PlaceJudge(problem), {.seconds = 0.1}), refuses(ErrorCode::limit, "memory"));
}

TEST(Placers, AreRefusedByName) {
  Rng rng(1);
  const PlaceProblem problem = drawn({}, rng);
  EXPECT_THAT(place(PlaceJudge(problem), {.by = "best"}),
              refuses(ErrorCode::bad_input, "'best' ... heft"));
}

TEST(Placers, EndWhereTheBoundIsMet) {
  PlaceProblem problem;
  problem.name = "chain";
  problem.system = task_system(2).value();
  problem.nodes = {{.id = 0, .name = "", .seconds = {1e-3}},
                   {.id = 1, .name = "", .seconds = {1e-3}}};
  problem.tensors = {{0, {1}, 1e10, 0}};
  const PlaceResult result = place(PlaceJudge(problem), {.seconds = 1e30}).value();
  EXPECT_EQ(result.value, 2e-3);
  EXPECT_EQ(result.gap(PlaceGoal::step), 0);
}

// Each one ends soon behind Ctrl-C, at whatever step it is heard.
TEST(Placers, AllHearACancelledRun) {
  Rng rng(3);
  const PlaceProblem problem = drawn({.nodes = 18, .devices = 3, .memory = false}, rng);
  const PlaceJudge judge(problem);
  for (const PlacerRow& row : placers())
    for (const bool at_first : {true, false}) {
      CancelToken cancel;
      if (at_first) cancel.cancel();
      PlaceOptions options = {.by = std::string(row.name), .seconds = 1e6, .cancel = &cancel};
      options.better = [&](double, double) { cancel.cancel(); };
      const Result<PlaceResult> result = place(judge, options);
      if (result.ok())
        EXPECT_LT(result->value, kCannotRun) << row.name;
      else
        EXPECT_THAT(result, refuses(ErrorCode::interrupted, "stopped")) << row.name;
    }
}

// A quick placer has a second at least; this one would take many.
TEST(Placers, SayThatThereWasNoTime) {
  HONE_ONE_RUN_OF(3);
  PlaceProblem problem;
  problem.name = "wide";
  problem.system = task_system(16).value();
  for (int64_t i = 0; i < 60'000; ++i)
    problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}});
  EXPECT_THAT(place(PlaceJudge(problem), {.by = "etf", .seconds = 0.1}),
              refuses(ErrorCode::limit, "no time ... --seconds"));
}

TEST(Placers, ACancelledRunGivesWhatItHas) {
  Rng rng(2);
  const PlaceProblem problem = drawn({.nodes = 40, .memory = false}, rng);
  CancelToken cancel;
  cancel.cancel();
  const PlaceResult result =
      place(PlaceJudge(problem), {.seconds = 1e6, .cancel = &cancel}).value();
  EXPECT_LT(result.value, kCannotRun);
}

}  // namespace
}  // namespace hone::HONE_FILE
