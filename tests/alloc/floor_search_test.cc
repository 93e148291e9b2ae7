#include "alloc/floor_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/rng.h"

#include "tests/alloc/brute_force_testing.h"

namespace hone::HONE_FILE {
namespace {

Guide guide_with(const JumpWeights& jump) { return {learned_guide().preferences, jump}; }

// To where most, or least, is undone, whenever that is allowed; only as far as is proved.
constexpr JumpWeights kRoot = {{1e9, 0, 0, 0, 0}, {0, 1}};
constexpr JumpWeights kNear = {{1e9, 0, 0, 0, 0}, {0, -1}};
constexpr JumpWeights kProved = {{-1e9, 0, 0, 0, 0}, {0, 0}};

MemoryProblem small_problem(Rng& rng) {
  constexpr int64_t kMoments = 6;
  MemoryProblem problem;
  for (int64_t count = rng.between(1, 7); count > 0; --count) {
    const int64_t begin = rng.between(0, kMoments - 1);
    problem.buffers.push_back({.begin = begin,
                               .end = rng.between(begin + 1, kMoments),
                               .size = rng.between(1, 4),
                               .alignment = rng.chance(0.1) ? 2 : 1});
  }
  return problem;
}

// At each moment this many bytes are in use. Most problems have a placement that low, some have
// none; it takes up to some thousand backtracks to tell.
constexpr int64_t kFull = 60;

MemoryProblem full_problem(Rng& rng) {
  constexpr int64_t kMoments = 8;
  std::array<int64_t, kMoments> free;
  free.fill(kFull);
  MemoryProblem problem;
  for (int64_t begin = 0; begin < kMoments;) {
    int64_t room = free[static_cast<size_t>(begin)];
    if (room == 0) {
      ++begin;
      continue;
    }
    int64_t end = begin + 1;
    const int64_t most = std::min(begin + rng.between(1, 5), kMoments);
    for (; end < most && free[static_cast<size_t>(end)] > 0; ++end)
      room = std::min(room, free[static_cast<size_t>(end)]);
    const int64_t size = rng.between(1, std::min(room, kFull / 2));
    for (int64_t moment = begin; moment < end; ++moment) free[static_cast<size_t>(moment)] -= size;
    problem.buffers.push_back({.begin = begin, .end = end, .size = size});
  }
  return problem;
}

struct Outcome {
  bool is_placed = false;
  MemoryCounts counts;
};

// A placement is looked at by other code.
Outcome outcome(const MemoryProblem& problem, int64_t capacity, const Guide& guide,
                const MemoryTechniques& techniques = {}) {
  const Blocks blocks = blocks_of(problem).value();
  const BlockPacking& packing = blocks.spaces[0];
  EXPECT_TRUE(is_for_floors(packing));
  Limits limits;
  Outcome outcome;
  const FoundPlacement result =
      search_floors(packing, capacity, techniques, guide, limits, outcome.counts);
  EXPECT_NE(result.found, Found::limit);
  outcome.is_placed = result.found == Found::placement;
  if (outcome.is_placed) {
    std::vector<int64_t> offsets(problem.buffers.size());
    spread(packing, result.offsets, offsets);
    EXPECT_LE(heights_of(problem, offsets).value()[0], capacity);
  }
  return outcome;
}

TEST(FloorSearch, AgreesWithBruteForceWithEachGuide) {
  const Guide guides[] = {plain_guide(), learned_guide(), guide_with(kRoot), guide_with(kNear),
                          guide_with(kProved)};
  for (uint64_t seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const MemoryProblem problem = small_problem(rng);
    const int64_t least = least_height(problem).value();
    for (const Guide& guide : guides) {
      ASSERT_TRUE(outcome(problem, least, guide).is_placed);
      ASSERT_FALSE(outcome(problem, least - 1, guide).is_placed);
    }
  }
}

class HardProblems : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Rng rng(seed);
      problems_.push_back(full_problem(rng));
      has_placement_.push_back(outcome(problems_.back(), kFull, guide_with(kProved)).is_placed);
    }
    EXPECT_GT(std::ranges::count(has_placement_, true), 5);
    EXPECT_GT(std::ranges::count(has_placement_, false), 3);
  }

  // How often it went back further than was proved, over the first of them.
  static int64_t expect_the_same(const Guide& guide, const MemoryTechniques& techniques = {},
                                 size_t first = 30) {
    int64_t restarts = 0;
    for (size_t i = 0; i < first; ++i) {
      const Outcome of = outcome(problems_[i], kFull, guide, techniques);
      EXPECT_EQ(of.is_placed, has_placement_[i]) << i;
      restarts += of.counts.restarts;
    }
    return restarts;
  }

  static inline std::vector<MemoryProblem> problems_;
  static inline std::vector<bool> has_placement_;
};

TEST_F(HardProblems, HaveTheSameAnswersHoweverFarItGoesBack) {
  EXPECT_EQ(expect_the_same(guide_with(kProved)), 0);
  EXPECT_GT(expect_the_same(plain_guide()), 0);
  EXPECT_GT(expect_the_same(learned_guide()), 0);
  EXPECT_GT(expect_the_same(guide_with(kRoot)), 0);
  EXPECT_GT(expect_the_same(guide_with(kNear)), 0);
}

TEST_F(HardProblems, HaveTheSameAnswersWithAnyWeights) {
  Rng rng(1);
  for (int i = 0; i < 10; ++i) {
    JumpWeights jump;
    for (double& weight : jump.failure) weight = rng.normal();
    for (double& weight : jump.decision) weight = rng.normal();
    expect_the_same(guide_with(jump), {}, 15);
  }
}

// Nothing but longer turns brings the search to its end where it keeps nothing of what failed.
TEST_F(HardProblems, HaveTheSameAnswersWithoutNogoods) {
  for (const JumpWeights& jump : {kRoot, kNear}) {
    expect_the_same(guide_with(jump), {.nogoods = false}, 15);
    expect_the_same(guide_with(jump), {.decompose = false, .nogoods = false, .backjump = false}, 8);
  }
}

TEST_F(HardProblems, AreNotBegunAnewWithoutRestarts) {
  EXPECT_EQ(expect_the_same(guide_with(kRoot), {.restarts = false}), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
