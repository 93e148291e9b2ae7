#include "report/memory_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kIds[] = {"a", "b", "c"};

TEST(MemoryText, SaysHeightBoundAndGapOfEachSpace) {
  MemoryProblem problem = {.buffers = {{.size = 3}, {.size = 4}}, .capacity = {1100}};
  MemoryPlan plan;
  plan.spaces = {{1009, 1000}};
  EXPECT_THAT(memory_lines(problem, plan),
              ElementsAre("2 buffers: height 1009, bound 1000, gap 9 (0.9%), capacity 1100"));
  problem.buffers[1].space = 1;
  plan.spaces.push_back({4, 4});
  EXPECT_EQ(memory_lines(problem, plan).back(), "space 1, 1 buffers: height 4, bound 4, gap 0");
}

TEST(MemoryText, SaysWhereNoPlacementWasFound) {
  const MemoryProblem problem = {.buffers = {{.size = 3}, {.size = 4, .space = 1}},
                                 .capacity = {8}};
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::limit;
  plan.spaces = {{0, 3}, {4, 4}};
  EXPECT_THAT(memory_lines(problem, plan),
              ElementsAre("space 0, 1 buffers: no placement was found, bound 3, capacity 8",
                          "space 1, 1 buffers: height 4, bound 4, gap 0"));
  const std::string json = memory_json(problem, plan, 0, kIds);
  EXPECT_THAT(json, HasSubstr(R"("height": 4)"));
  EXPECT_THAT(json, Not(HasSubstr(R"("height": 0)")));
}

TEST(MemoryText, AWitnessSaysWhatIsUsedAtItsMoment) {
  const MemoryProblem problem = {
      .buffers = {{.begin = 0, .end = 9, .size = 16, .gaps = {{2, 4, 0, 8}}},
                  {.begin = 0, .end = 9, .size = 6, .alias = MemoryAlias{0, 4}},
                  {.begin = 3, .end = 4, .size = 12}},
      .capacity = {20}};
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::infeasible;
  plan.witness = {0, 1, 2};
  plan.witness_moment = 3;  // bytes 0 to 8 and 4 to 10 of the first two
  EXPECT_THAT(witness_text(problem, plan, kIds),
              says("3 buffers ... capacity 20 ... a, b, c ... moment 3 ... 22 bytes"));
  plan.witness_moment = 2;
  EXPECT_THAT(witness_text(problem, plan, kIds), says("moment 2 ... 10 bytes"));
  plan.witness = {2};
  plan.witness_moment = 3;
  EXPECT_THAT(witness_text(problem, plan, kIds),
              says("buffer ... capacity 20 ... c ... moment 3 ... 12"));
}

TEST(MemoryText, LongWitnessesAreCut) {
  MemoryProblem problem;
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::infeasible;
  const std::vector<std::string_view> ids(50, "x");
  for (uint32_t i = 0; i < 50; ++i) {
    problem.buffers.push_back({.end = 1, .size = 1});
    plan.witness.push_back(i);
  }
  EXPECT_THAT(witness_text(problem, plan, ids), HasSubstr("x and 30 more; at moment 0"));
}

TEST(MemoryText, LongWitnessesNameTheLargest) {
  MemoryProblem problem;
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::infeasible;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 22; ++i) {
    problem.buffers.push_back({.end = 1, .size = i + 1});
    plan.witness.push_back(i);
    names.push_back(std::to_string(i));
  }
  const std::vector<std::string_view> ids(names.begin(), names.end());
  const std::string text = witness_text(problem, plan, ids);
  EXPECT_THAT(text, says("22 buffers ... 21, 20, 19"));
  EXPECT_THAT(text, HasSubstr(", 3, 2 and 2 more; at moment 0"));
}

TEST(MemoryText, AliasesThatAreNotInUseHaveNoPartInAnOverload) {
  MemoryProblem problem = {.buffers = {{.begin = 0, .end = 2, .size = 16},
                                       {.begin = 5, .end = 9, .size = 16, .alias = MemoryAlias{0}},
                                       {.begin = 1, .end = 6, .size = 8}},
                           .capacity = {20}};
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::infeasible;
  plan.witness = {0, 1, 2};
  plan.witness_moment = 1;
  EXPECT_THAT(witness_text(problem, plan, kIds),
              says("2 buffers ... capacity 20 ... a, c ... moment 1 ... 24 bytes"));
  problem.capacity = {24};  // then it is not a matter of one moment
  EXPECT_THAT(witness_text(problem, plan, kIds), says("3 buffers"));
}

TEST(MemoryText, LongChainsOfAliasesAreFollowedOnce) {
  constexpr uint32_t kLength = 200'000;  // in squared time: minutes
  MemoryProblem problem = {.buffers = {}, .capacity = {kLength}};
  MemoryPlan plan;
  plan.verdict = MemoryVerdict::infeasible;
  for (uint32_t i = 0; i < kLength; ++i) {
    problem.buffers.push_back({.end = 1, .size = 2});
    if (i > 0) problem.buffers.back().alias = MemoryAlias{i - 1, 1};
    plan.witness.push_back(kLength - 1 - i);
  }
  const std::vector<std::string_view> ids(kLength, "x");
  EXPECT_THAT(witness_text(problem, plan, ids),
              HasSubstr("x and 199980 more; at moment 0 they use 200001 bytes"));
}

TEST(MemoryText, IsAlsoData) {
  const MemoryProblem problem = {.buffers = {{.end = 1, .size = 3}}, .capacity = {8}};
  MemoryPlan plan;
  plan.spaces = {{3, 3}};
  plan.counts.nodes = 5;
  const std::string placed = memory_json(problem, plan, 0.25, kIds);
  for (std::string_view word : {R"("verdict": "placed")", R"("height": 3)", R"("bound": 3)",
                                R"("capacity": 8)", R"("nodes": 5)", R"("seconds": 0.25)"})
    EXPECT_THAT(placed, HasSubstr(std::string(word)));
  EXPECT_TRUE(placed.ends_with("}\n"));
  plan.verdict = MemoryVerdict::infeasible;
  plan.witness = {0};
  EXPECT_THAT(memory_json(problem, plan, 0, kIds), HasSubstr(R"("witness": [)"));
}

}  // namespace
}  // namespace hone::HONE_FILE
