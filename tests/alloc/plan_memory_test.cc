#include "alloc/plan_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include "alloc/generate.h"
#include "base/rng.h"

#include "tests/alloc/brute_force_testing.h"
#include "tests/base/share_testing.h"

namespace hone::HONE_FILE {
namespace {

// Any problem of a few buffers, so small that all placements can be tried.
MemoryProblem any_problem(Rng& rng) {
  constexpr int64_t kMoments = 6;
  MemoryProblem problem;
  const int64_t count = rng.between(1, 7);
  for (int64_t i = 0; i < count; ++i) {
    MemoryBuffer buffer;
    buffer.begin = rng.between(0, kMoments - 1);
    buffer.end = rng.between(buffer.begin + (rng.chance(0.95) ? 1 : 0), kMoments);
    buffer.size = rng.between(rng.chance(0.95) ? 1 : 0, 4);
    if (rng.chance(0.15)) buffer.alignment = rng.between(2, 4);
    if (rng.chance(0.08)) buffer.offset = rng.between(0, 5) / buffer.alignment * buffer.alignment;
    if (rng.chance(0.2) && buffer.end - buffer.begin > 1) {
      MemoryGap gap;
      gap.begin = rng.between(buffer.begin, buffer.end - 1);
      gap.end = rng.between(gap.begin, buffer.end);
      if (rng.chance(0.5)) {
        gap.low = rng.between(0, buffer.size);
        gap.high = rng.between(gap.low, buffer.size);
      }
      buffer.gaps.push_back(gap);
    }
    if (i > 0 && rng.chance(0.15))
      buffer.alias = {static_cast<uint32_t>(rng.below(static_cast<uint64_t>(i))),
                      rng.between(0, 3)};
    problem.buffers.push_back(buffer);
  }
  return problem;
}

// Without what only the slower of the two searches can do.
MemoryProblem plain_problem(Rng& rng) {
  MemoryProblem problem = any_problem(rng);
  for (MemoryBuffer& buffer : problem.buffers) {
    buffer.offset.reset();
    buffer.alias.reset();
    for (MemoryGap& gap : buffer.gaps) gap.low = gap.high = 0;
  }
  return problem;
}

std::string text(const MemoryProblem& problem) {
  std::string text;
  for (const MemoryBuffer& b : problem.buffers) {
    text += fmt::format("\n[{}, {}) x {} align {}", b.begin, b.end, b.size, b.alignment);
    if (b.offset) text += fmt::format(" at {}", *b.offset);
    for (const MemoryGap& g : b.gaps)
      text += fmt::format(" gap [{}, {}) x [{}, {})", g.begin, g.end, g.low, g.high);
    if (b.alias) text += fmt::format(" alias {}+{}", b.alias->of, b.alias->shift);
  }
  return text;
}

// The least height, and whether one less is too little, are as brute force says.
void expect_agreement(MemoryProblem problem, const MemoryTechniques& techniques) {
  const std::optional<int64_t> least = least_height(problem);
  MemoryOptions options{.minimize = true, .techniques = techniques};
  const MemoryPlan plan = plan_memory(problem, options).value();
  if (!least) {
    ASSERT_EQ(plan.verdict, MemoryVerdict::infeasible) << text(problem);
    ASSERT_FALSE(plan.witness.empty());
    return;
  }
  ASSERT_EQ(plan.verdict, MemoryVerdict::placed) << text(problem);
  ASSERT_EQ(plan.spaces[0].height, *least) << text(problem);
  ASSERT_EQ(plan.spaces[0].bound, *least) << text(problem);
  problem.capacity = {*least};
  ASSERT_EQ(plan_memory(problem, options).value().verdict, MemoryVerdict::placed) << text(problem);
  options.minimize = false;
  ASSERT_EQ(plan_memory(problem, options).value().verdict, MemoryVerdict::placed) << text(problem);
  if (*least == 0) return;
  problem.capacity = {*least - 1};
  const MemoryPlan none = plan_memory(problem, options).value();
  ASSERT_EQ(none.verdict, MemoryVerdict::infeasible) << text(problem);
  options.minimize = true;
  ASSERT_EQ(plan_memory(problem, options).value().verdict, MemoryVerdict::infeasible)
      << text(problem);
  options.minimize = false;
  ASSERT_FALSE(none.witness.empty());
  MemoryProblem part{{}, problem.capacity};  // the witness does not fit by itself
  if (std::ranges::none_of(problem.buffers, [](const MemoryBuffer& b) { return !!b.alias; })) {
    for (uint32_t i : none.witness) part.buffers.push_back(problem.buffers[i]);
    ASSERT_EQ(plan_memory(part, options).value().verdict, MemoryVerdict::infeasible)
        << text(problem);
  }
}

TEST(PlanMemory, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 100'000; ++seed) {
    if (!tested::in_share(seed, 6)) continue;
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const MemoryProblem problem = rng.chance(0.5) ? any_problem(rng) : plain_problem(rng);
    MemoryTechniques techniques;
    techniques.greedy = techniques.improve = rng.chance(0.3);
    expect_agreement(problem, techniques);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

TEST(PlanMemory, AllTechniquesInAllWaysAgree) {
  std::vector<MemoryProblem> problems;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Rng rng(seed);
    problems.push_back(seed % 2 == 0 ? any_problem(rng) : plain_problem(rng));
  }
  for (uint32_t with = 0; with < (1U << kMemoryTechniques.size()); ++with) {
    MemoryTechniques techniques;
    for (size_t i = 0; i < kMemoryTechniques.size(); ++i)
      techniques.*kMemoryTechniques[i].flag = (with >> i & 1) != 0;
    expect_agreement(problems[with % problems.size()], techniques);
    if (HasFatalFailure()) FAIL() << "techniques " << with;
  }
}

MemoryBuffer buffer(int64_t begin, int64_t end, int64_t size) {
  return {.begin = begin, .end = end, .size = size};
}

MemoryPlan planned(const MemoryProblem& problem, const MemoryOptions& options = {}) {
  return plan_memory(problem, options).value();
}

TEST(PlanMemory, OfNothing) {
  const MemoryPlan plan = planned({});
  EXPECT_EQ(plan.verdict, MemoryVerdict::placed);
  EXPECT_TRUE(plan.offsets.empty());
  EXPECT_EQ(plan.spaces[0].height, 0);
}

TEST(PlanMemory, SaysWhatOfTheLoadIsTooMuch) {
  MemoryProblem problem{{buffer(0, 9, 1), buffer(2, 4, 50), buffer(3, 5, 40), buffer(3, 9, 20)},
                        {100}};
  const MemoryPlan plan = planned(problem);
  EXPECT_EQ(plan.verdict, MemoryVerdict::infeasible);
  EXPECT_THAT(plan.witness, testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_EQ(plan.witness_moment, 3);
  EXPECT_TRUE(plan.offsets.empty());
}

// No moment has more than 4 in use, but b, which lies at an end, is in the way of a or of c.
TEST(PlanMemory, SaysWhatDoesNotFitTogether) {
  MemoryProblem problem{{buffer(0, 2, 2), buffer(1, 4, 1), buffer(3, 5, 2), buffer(0, 1, 1),
                         buffer(2, 3, 3), buffer(4, 5, 1)},
                        {3}};
  problem.buffers[0].offset = 1;
  problem.buffers[2].offset = 0;
  const MemoryPlan plan = planned(problem);
  EXPECT_EQ(plan.verdict, MemoryVerdict::infeasible);
  EXPECT_THAT(plan.witness, testing::IsSupersetOf({1U}));
  EXPECT_LE(plan.witness.size(), 3U);
}

TEST(PlanMemory, SaysWhichOffsetsContradictEachOther) {
  MemoryProblem problem{{buffer(0, 4, 4), buffer(3, 5, 4), buffer(4, 9, 4)}};
  for (MemoryBuffer& each : problem.buffers) each.offset = 8;
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(0, 1));
  EXPECT_EQ(planned(problem).witness_moment, 3);
  problem.buffers[1].offset = 3;
  problem.buffers[1].alignment = 2;
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(1));
}

TEST(PlanMemory, SaysWhichAliasesContradictEachOther) {
  MemoryProblem problem{{buffer(0, 4, 4), buffer(0, 4, 4), buffer(0, 4, 4)}};
  std::vector<MemoryBuffer>& b = problem.buffers;
  b[1].alias = {0, 0};
  b[2].alias = {0, 1};
  b[0].alignment = b[2].alignment = 4;
  b[1].alignment = 3;
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(0, 2));
  b[2].alignment = 1;
  b[2].offset = 4;  // the first one would lie at 3
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(0, 2));
  b[0].alignment = 1;
  b[1].alignment = 1;
  b[2].offset = 0;  // at -1
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(0, 2));
}

// Whatever else there is: no work is done on what could be placed.
TEST(PlanMemory, SaysAtOnceWhatCannotBePlaced) {
  Rng rng(3);
  MemoryProblem problem = guillotine({.buffers = 400}, rng);
  std::erase_if(problem.buffers, [&](const MemoryBuffer&) { return rng.chance(0.05); });
  const auto first = static_cast<uint32_t>(problem.buffers.size());
  for (int i = 0; i < 2; ++i) {
    problem.buffers.push_back(buffer(0, 1, 8));
    problem.buffers.back().space = 1;
  }
  problem.capacity = {1 << 20, 10};
  const MemoryPlan plan = planned(problem, {.minimize = true});
  EXPECT_EQ(plan.verdict, MemoryVerdict::infeasible);
  EXPECT_THAT(plan.witness, testing::UnorderedElementsAre(first, first + 1));
}

TEST(PlanMemory, PlacesSpacesApart) {
  MemoryProblem problem{{buffer(0, 4, 4), buffer(0, 4, 5), buffer(0, 4, 6)}, {4, 11}};
  problem.buffers[1].space = problem.buffers[2].space = 1;
  const MemoryPlan plan = planned(problem);
  EXPECT_EQ(plan.verdict, MemoryVerdict::placed);
  EXPECT_EQ(plan.spaces[0].height, 4);
  EXPECT_EQ(plan.spaces[1].height, 11);
  problem.capacity = {4, 10};
  EXPECT_THAT(planned(problem).witness, testing::UnorderedElementsAre(1, 2));
}

// Large numbers without a common divisor.
TEST(PlanMemory, CountsInAsManyBitsAsItTakes) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  MemoryProblem problem;
  for (int64_t i = 0; i < 12; ++i) problem.buffers.push_back(buffer(i, i + 3, kLarge + 17 * i));
  const MemoryPlan plan = planned(problem, {.minimize = true, .techniques = {.greedy = false}});
  EXPECT_EQ(plan.verdict, MemoryVerdict::placed);
  EXPECT_EQ(plan.spaces[0].height, plan.spaces[0].bound);
}

MemoryProblem hard_problem(uint64_t seed) {
  Rng rng(seed);
  MemoryProblem problem = guillotine({.buffers = 300}, rng);
  std::erase_if(problem.buffers, [&](const MemoryBuffer&) { return rng.chance(0.04); });
  return problem;
}

TEST(PlanMemory, IsTheSameEachTimeAndWithinItsSteps) {
  const MemoryProblem problem = hard_problem(1);
  const MemoryOptions options{.minimize = true, .nodes = 3'000};
  const MemoryPlan one = planned(problem, options), other = planned(problem, options);
  EXPECT_EQ(one.offsets, other.offsets);
  EXPECT_EQ(one.counts.nodes, other.counts.nodes);
  EXPECT_GT(one.counts.nodes, 0);
  EXPECT_LE(one.counts.nodes, 3'100);
}

TEST(PlanMemory, TellsWhatIsBetterAsItGoesAndIsNeverWorseThanGreedy) {
  int64_t nodes = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const MemoryProblem problem = hard_problem(seed);
    MemoryTechniques only_greedy{};
    for (const MemoryTechnique& each : kMemoryTechniques) only_greedy.*each.flag = false;
    only_greedy.greedy = true;
    const int64_t greedy =
        planned(problem, {.minimize = true, .nodes = 1, .techniques = only_greedy})
            .spaces[0]
            .height;
    MemoryBounds last{INT64_MAX, 0};
    const MemoryPlan plan = planned(
        problem,
        {.minimize = true, .nodes = 5'000, .better = [&](uint32_t, const MemoryBounds& now) {
           EXPECT_TRUE(now.height < last.height || now.bound > last.bound);
           EXPECT_LE(now.bound, now.height);
           last = now;
         }});
    nodes += plan.counts.nodes;
    EXPECT_LE(plan.spaces[0].height, greedy);
    EXPECT_EQ(last.height, plan.spaces[0].height);
    EXPECT_EQ(last.bound, plan.spaces[0].bound);
  }
  EXPECT_GT(nodes, 0);
}

TEST(PlanMemory, EndsWhenItIsToldTo) {
  const MemoryProblem problem = hard_problem(2);
  CancelToken cancel;
  cancel.cancel();
  const MemoryPlan plan = planned(problem, {.minimize = true, .cancel = &cancel});
  EXPECT_EQ(plan.verdict, MemoryVerdict::limit);
  EXPECT_EQ(plan.offsets.size(), problem.buffers.size());
}

// One window brings all to the search that looks at pairs; it ends by its steps all the same.
TEST(PlanMemory, PlacesAWindowAmongManyBuffers) {
  Rng rng(5);
  MemoryProblem problem;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t begin = rng.between(0, 9'000);
    problem.buffers.push_back(buffer(begin, begin + rng.between(1, 5'000), rng.between(1, 1'000)));
  }
  MemoryBuffer& first = problem.buffers[0];
  first.gaps = {{.begin = first.begin, .end = first.end, .low = 0, .high = 1}};
  const MemoryPlan plan = planned(problem, {.minimize = true, .nodes = 50});
  EXPECT_EQ(plan.verdict, MemoryVerdict::limit);
  EXPECT_EQ(plan.offsets.size(), problem.buffers.size());
  EXPECT_GT(plan.counts.nodes, 0);
  EXPECT_LE(plan.counts.nodes, 60);
}

TEST(PlanMemory, RefusesWhatIsNotWellFormed) {
  EXPECT_FALSE(plan_memory({{buffer(3, 2, 1)}}).ok());
}

// Perfect packings of new rectangles, at sizes that are not small.
TEST(PlanMemory, FillsRectanglesWithoutAGap) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const MemoryProblem problem = guillotine({.buffers = rng.between(50, 200)}, rng);
    const MemoryPlan plan = planned(problem, {.nodes = 100'000});
    EXPECT_EQ(plan.verdict, MemoryVerdict::placed) << seed;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
