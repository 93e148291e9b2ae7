#include "place/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/place/random_problem.h"

// Choices of a node: its price on each device, and what the placement comes to if it moves.

namespace hone::HONE_FILE {
namespace {

using tested::random_place_problem;
using tested::random_placement;

TEST(PlaceChoices, AreWhatTheJudgeSaysOfTheMovedPlacement) {
  int moved_count = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = random_place_problem(
        {.nodes = 8, .devices = rng.between(2, 4), .memory = rng.chance(0.5)}, rng);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const PlaceUnits units(judge);
    const DevicePlacement placement = random_placement(units, rng);
    for (const PlaceGoal goal : kPlaceGoals) {
      const double value = judge.value(placement, goal);
      if (value == kCannotRun) continue;
      for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
        const std::vector<PlaceChoice> choices = choices_of(judge, units, placement, goal, i);
        ASSERT_EQ(choices.size(), problem.devices());
        for (uint32_t d = 0; d < problem.devices(); ++d) {
          DevicePlacement moved = placement;
          for (uint32_t k = 0; k < problem.nodes.size(); ++k)
            if (k == i || (problem.nodes[i].together != kAnywhere &&
                           problem.nodes[k].together == problem.nodes[i].together))
              moved.device[k] = d;
          if (!check(problem, moved).ok()) {
            EXPECT_EQ(choices[d].change, kCannotRun) << seed;
            continue;
          }
          EXPECT_EQ(choices[d].seconds, problem.nodes[i].seconds[judge.devices()[d].target]);
          const double there = judge.value(moved, goal);
          EXPECT_EQ(choices[d].change, there == kCannotRun ? kCannotRun : there - value) << seed;
          ++moved_count;
        }
        EXPECT_EQ(choices[placement.device[i]].change, 0);
      }
    }
  }
  EXPECT_GT(moved_count, 300);
}

}  // namespace
}  // namespace hone::HONE_FILE
