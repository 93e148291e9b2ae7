#include "place/chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "place/arena.h"
#include "place/generate.h"
#include "tests/base/says_testing.h"
#include "tests/place/arena_testing.h"
#include "tests/place/policy_testing.h"

// Multi-chip modules: the rules against a second judge, and the solver.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// Nodes with an edge from each pair's first to its second.
PlaceProblem graph_of(size_t nodes, std::initializer_list<std::pair<uint32_t, uint32_t>> edges,
                      uint32_t chips) {
  Rng rng(1);
  PlaceProblem problem = make_place({.shape = Shape::line, .devices = chips, .nodes = 16}, rng);
  problem.nodes.clear();
  problem.tensors.clear();
  for (size_t i = 0; i < nodes; ++i)
    problem.nodes.push_back({.id = static_cast<int64_t>(i), .name = "", .seconds = {1e-3}});
  for (const auto& [from, to] : edges) problem.tensors.push_back({from, {to}, 1000, 0});
  return problem;
}

DevicePlacement on_chips(std::vector<uint32_t> chips) { return {std::move(chips), {}}; }

TEST(Chips, RefuseWhatBreaksARule) {
  const PlaceProblem problem = graph_of(3, {{0, 1}, {1, 2}, {0, 2}}, 4);
  EXPECT_TRUE(check_chips(problem, on_chips({0, 0, 1})).ok());
  EXPECT_TRUE(check_chips(problem, on_chips({0, 1, 1})).ok());
  EXPECT_THAT(check_chips(problem, on_chips({1, 0, 1})),
              refuses(ErrorCode::mismatch, "node 0 on chip 1 ... node 1 on chip 0"));
  EXPECT_THAT(check_chips(problem, on_chips({0, 1, 2})),
              refuses(ErrorCode::mismatch, "from chip 0 to chip 2, which chip 1"));
  EXPECT_THAT(check_chips(problem, on_chips({1, 1, 1})),
              refuses(ErrorCode::mismatch, "chip 1 is used, but chip 0 is not"));
  EXPECT_THAT(check_chips(problem, on_chips({0, 0, 2})),
              refuses(ErrorCode::mismatch, "chip 2 is used, but chip 1 is not"));
}

// All placements of few nodes that the rules allow, found one by one.
std::vector<std::vector<uint32_t>> all_valid(const PlaceProblem& problem) {
  std::vector<std::vector<uint32_t>> valid;
  std::vector<uint32_t> chips(problem.nodes.size());
  const std::function<void(size_t)> fill = [&](size_t at) {
    if (at == chips.size()) {
      if (check_chips(problem, on_chips(chips)).ok()) valid.push_back(chips);
      return;
    }
    for (chips[at] = 0; chips[at] < problem.devices(); ++chips[at]) fill(at + 1);
  };
  fill(0);
  return valid;
}

// Each of them comes up, and no other.
TEST(ChipSolver, SamplesExactlyWhatTheRulesAllow) {
  const PlaceProblem problems[] = {graph_of(3, {{0, 1}, {1, 2}, {0, 2}}, 3),
                                   graph_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 3),
                                   graph_of(5, {{0, 1}, {1, 2}, {2, 3}, {0, 4}}, 3)};
  for (const PlaceProblem& problem : problems) {
    const std::vector<std::vector<uint32_t>> valid = all_valid(problem);
    const PlaceJudge judge(problem);
    const PlaceOptions options = {.goal = PlaceGoal::load};
    const PlaceRun run(judge, options);
    ChipSolver solver(run);
    const std::vector<double> even(solver.blocks() * solver.chips(), 1.0);
    std::set<std::vector<uint32_t>> found;
    Rng rng(2);
    for (int i = 0; i < 3000; ++i) {
      const auto chips = solver.sample(even, rng);
      ASSERT_TRUE(chips.has_value());
      const DevicePlacement placement = solver.placement(*chips);
      ASSERT_TRUE(check_chips(problem, placement).ok());
      found.insert(placement.device);
    }
    EXPECT_EQ(found, std::set(valid.begin(), valid.end()));
  }
}

TEST(ChipSolver, KeepsACandidateThatIsValidAndMendsOthers) {
  const PlaceProblem problem = graph_of(5, {{0, 1}, {1, 2}, {2, 3}, {0, 4}}, 3);
  const PlaceJudge judge(problem);
  const PlaceOptions options = {.goal = PlaceGoal::load};
  const PlaceRun run(judge, options);
  ChipSolver solver(run);
  const std::vector<double> even(solver.blocks() * solver.chips(), 1.0);
  Rng rng(3);
  std::vector<uint32_t> candidate(solver.blocks());
  for (int i = 0; i < 200; ++i) {
    for (uint32_t& chip : candidate) chip = static_cast<uint32_t>(rng.below(3));
    const auto fixed = solver.fix(candidate, even, rng);
    ASSERT_TRUE(fixed.has_value());
    EXPECT_TRUE(check_chips(problem, solver.placement(*fixed)).ok());
    if (check_chips(problem, solver.placement(candidate)).ok()) EXPECT_EQ(*fixed, candidate);
  }
}

TEST(ChipSolver, KeepsTheRulesAndMemoryOnDrawnGraphs) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(1)).value();
  int64_t valid = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = make_place({.family = kPlaceFamilies[seed % 6],
                                             .shape = seed % 2 == 0 ? Shape::ring : Shape::line,
                                             .devices = 4,
                                             .nodes = 60,
                                             .is_tight = true},
                                            rng);
    const PlaceJudge judge(problem);
    for (const ChipSearch search : kChipSearches) {
      const ChipOutcome found = search_chips(judge, search, 20, seed, &policy).value();
      valid += found.valid;
      if (found.value == kCannotRun) continue;
      EXPECT_TRUE(check_chips(problem, found.placement).ok()) << name(search) << seed;
      EXPECT_TRUE(check_arenas(judge, found.placement).ok()) << name(search) << seed;
      EXPECT_EQ(judge.value(found.placement, PlaceGoal::load), found.value);
    }
  }
  EXPECT_GT(valid, 100);
}

TEST(ChipSearch, SaysTheBestOfEachSample) {
  Rng rng(3);
  const PlaceProblem problem = make_place({.shape = Shape::ring, .devices = 3, .nodes = 40}, rng);
  const ChipOutcome found = search_chips(PlaceJudge(problem), ChipSearch::random, 30, 1).value();
  ASSERT_EQ(found.best.size(), 30U);
  EXPECT_TRUE(std::ranges::is_sorted(found.best, std::greater<>()));
  EXPECT_EQ(found.best.back(), found.value);
  EXPECT_EQ(found.samples_to(found.best[0]), 1);
  EXPECT_EQ(found.samples_to(found.value / 2), 31);
  const int64_t least = found.samples_to(found.value);
  EXPECT_EQ(found.best[static_cast<size_t>(least) - 1], found.value);
  if (least > 1) EXPECT_GT(found.best[static_cast<size_t>(least) - 2], found.value);
}

// Equal parts of the time leave all but the last node on the first chip, where the arena of their
// tensors has holes.
TEST(ChipSearch, MendsAPlacementWhoseArenaDoesNotFit) {
  PlaceProblem problem = tested::holey_tensors(2, 6 * kOffsetAlignment);
  problem.nodes.back().seconds = {1};
  const PlaceJudge judge(problem);
  EXPECT_FALSE(check_arenas(judge, on_chips({0, 0, 0, 0, 0, 0, 0, 1})).ok());
  int64_t mended = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ChipOutcome found = search_chips(judge, ChipSearch::greedy, 1, seed).value();
    mended += found.mended;
    EXPECT_EQ(found.valid, found.mended);
    if (found.mended == 0) continue;
    EXPECT_TRUE(check_chips(problem, found.placement).ok());
    EXPECT_TRUE(check_arenas(judge, found.placement).ok());
  }
  EXPECT_GT(mended, 10);
  // With a unit more it stays as it was.
  problem.system.devices[0].memory_bytes += kOffsetAlignment;
  const PlaceJudge roomy(problem);
  const ChipOutcome kept = search_chips(roomy, ChipSearch::greedy, 1, 1).value();
  EXPECT_EQ(kept.mended, 0);
  EXPECT_EQ(kept.placement.device, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 1}));
}

// All nodes have to be on one chip. Six units are there at once at most, and no arena has six.
TEST(ChipSearch, GivesUpWhereNoArenaFits) {
  PlaceProblem problem = tested::holey_tensors(3, 6 * kOffsetAlignment);
  for (PlaceNode& node : problem.nodes) node.together = 1;
  const PlaceJudge judge(problem);
  EXPECT_NE(judge.value(on_chips(std::vector<uint32_t>(8, 0)), PlaceGoal::load), kCannotRun);
  for (const ChipSearch search : {ChipSearch::greedy, ChipSearch::random, ChipSearch::annealing}) {
    const ChipOutcome found = search_chips(judge, search, 10, 1).value();
    EXPECT_EQ(found.value, kCannotRun);
    EXPECT_EQ(found.valid, 0);
  }
}

// One of two nodes on a chip that is too small for both can go to another chip.
TEST(ChipSearch, MovesTheBlockThatCanMove) {
  PlaceProblem problem = tested::chip_nodes(2, 2, 3 * kOffsetAlignment);
  for (PlaceNode& node : problem.nodes) node.scratch = 0;
  problem.system.targets.push_back(problem.system.targets[0]);
  problem.system.devices = {{1, 0, 3 * kOffsetAlignment}, {1, 1, 9 * kOffsetAlignment}};
  problem.nodes[0].seconds = {1e-3, kCannotRun};
  problem.nodes[1].seconds = {1e-3, 1e-3};
  problem.tensors = {{0, {1}, 1000, 2 * kOffsetAlignment}};
  problem.nodes[1].scratch = 2 * kOffsetAlignment;
  const PlaceJudge judge(problem);
  ASSERT_FALSE(check_arenas(judge, on_chips({0, 0})).ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const ChipOutcome found = search_chips(judge, ChipSearch::random, 4, seed).value();
    EXPECT_EQ(found.valid, 4) << seed;
  }
}

TEST(ChipSolver, BarsNoBlockFromItsLastChip) {
  const PlaceProblem problem = graph_of(2, {{0, 1}}, 2);
  const PlaceJudge judge(problem);
  const PlaceOptions options = {.goal = PlaceGoal::load};
  const PlaceRun run(judge, options);
  ChipSolver solver(run);
  EXPECT_TRUE(solver.bar(0, 1));
  EXPECT_FALSE(solver.bar(0, 0));
  EXPECT_TRUE(solver.bar(1, 1));
  solver.lift_bars();
  EXPECT_TRUE(solver.bar(0, 0));
  EXPECT_FALSE(solver.bar(1, 1));  // it comes after the other one
}

TEST(ChipSearch, TellsWhatCannotBeAddedUpAndStopsWhereItIsCancelled) {
  PlaceProblem problem = graph_of(2, {{0, 1}}, 2);
  CancelToken cancel;
  cancel.cancel();
  EXPECT_THAT(search_chips(PlaceJudge(problem), ChipSearch::random, 10, 1, nullptr, &cancel),
              refuses(ErrorCode::interrupted, "stopped"));
  for (PlaceNode& node : problem.nodes) node.seconds = {0.6 * kMaxTimeline};
  EXPECT_THAT(search_chips(PlaceJudge(problem), ChipSearch::random, 10, 1),
              refuses(ErrorCode::limit, "one after another ... more than 864000"));
}

// Tensors so large that some placements do not fit at first.
TEST(ChipSearch, FindsPlacementsThatFitByMendingOthers) {
  int64_t mended = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Rng rng(seed);
    PlaceProblem problem = make_place({.family = kPlaceFamilies[seed % 6],
                                       .shape = Shape::line,
                                       .devices = 4,
                                       .nodes = 40,
                                       .is_tight = true},
                                      rng);
    for (PlaceTensor& tensor : problem.tensors) tensor.held *= 3;
    const PlaceJudge judge(problem);
    const ChipOutcome found = search_chips(judge, ChipSearch::annealing, 20, seed).value();
    mended += found.mended;
    if (found.value != kCannotRun) EXPECT_TRUE(check_arenas(judge, found.placement).ok()) << seed;
  }
  EXPECT_GT(mended, 5);
}

TEST(ChipSearch, RefusesMoreChipsThanASetHolds) {
  const PlaceProblem problem = graph_of(2, {{0, 1}}, kMostChips + 1);
  EXPECT_THAT(search_chips(PlaceJudge(problem), ChipSearch::greedy, 1, 0),
              refuses(ErrorCode::limit, "64 chips"));
}

}  // namespace
}  // namespace hone::HONE_FILE
