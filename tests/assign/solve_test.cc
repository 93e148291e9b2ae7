#include "assign/solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "assign/core.h"
#include "assign/json.h"
#include "base/file.h"
#include "tests/assign/plain_judge.h"
#include "tests/assign/random_problem.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::cost_of;
using tested::least_cost;
using tested::random_assign;
using tested::refuses;
using tested::text;

AssignProblem parsed(std::string_view json) {
  Result<AssignProblem> problem = parse_assign_json(json, "p.json");
  EXPECT_TRUE(problem.ok()) << json << problem.error().to_string();
  return std::move(problem).value();
}

TEST(Solve, FindsTheLeastCostOfEachSmallProblem) {
  int solved = 0, without = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    if (!tested::in_share(seed, 4)) continue;
    Rng rng(seed);
    const AssignProblem problem =
        random_assign({.nodes = rng.between(1, 6), .room = rng.uniform(-0.1, 0.9)}, rng);
    const std::optional<Int128> least = least_cost(problem);
    const Result<AssignResult> result = solve(problem, {.steps = 2000, .reduce = seed % 4 != 0});
    if (!least) {
      ++without;
      ASSERT_FALSE(result.ok()) << print_assign_json(problem);
      EXPECT_EQ(result.error().code(), ErrorCode::mismatch) << result.error().to_string();
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.error().to_string() << print_assign_json(problem);
    EXPECT_EQ(result->verdict, AssignVerdict::optimal);
    EXPECT_EQ(text(*result->bounds.cost), text(*least)) << print_assign_json(problem);
    EXPECT_EQ(text(result->bounds.bound), text(*least)) << print_assign_json(problem);
    EXPECT_EQ(text(cost_of(problem, result->assignment).value()), text(*least));
    ++solved;
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(without, 10);
}

// Problems that are too large for the complete search.
TEST(Solve, FindsSolutionsOfLargerProblems) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    if (!tested::in_share(seed, 4)) continue;
    Rng rng(seed);
    const AssignProblem problem = random_assign({.nodes = 150,
                                                 .options = 6,
                                                 .edges = 1.5,
                                                 .cost = 1000,
                                                 .forbidden = 0,
                                                 .functions = 0,
                                                 .room = 0.3,
                                                 .moments = 60},
                                                rng);
    const Int128 first = [&] {
      const Result<AssignResult> plain = solve(problem, {.steps = 1500, .reduce = false});
      EXPECT_TRUE(plain.ok() && plain->bounds.cost);
      return plain->bounds.cost.value_or(0);
    }();
    const Result<AssignResult> result = solve(problem, {.steps = 3000, .threads = 2});
    if (!result.ok()) {  // a node without an option
      EXPECT_EQ(result.error().code(), ErrorCode::mismatch);
      continue;
    }
    ASSERT_TRUE(result->bounds.cost);
    const std::optional<Int128> cost = cost_of(problem, result->assignment);
    ASSERT_TRUE(cost);
    EXPECT_EQ(text(*cost), text(*result->bounds.cost));
    EXPECT_LE(result->bounds.bound, *cost);
    EXPECT_LE(result->bounds.bound, first);
    EXPECT_LE(static_cast<double>(*cost), 1.05 * static_cast<double>(first));
    EXPECT_LE(result->bounds.gap(), 0.4);
  }
}

TEST(Solve, GivesTheSameByTheSameSeedOnOneThreadAndTwo) {
  Rng rng(5);
  const AssignProblem problem =
      random_assign({.nodes = 120, .forbidden = 0, .functions = 0, .moments = 40}, rng);
  const Result<AssignResult> one = solve(problem, {.steps = 2000, .seed = 7});
  const Result<AssignResult> two = solve(problem, {.steps = 2000, .seed = 7, .threads = 2});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->assignment, two->assignment);
  EXPECT_EQ(text(one->bounds.bound), text(two->bounds.bound));
  EXPECT_EQ(one->steps, two->steps);
}

TEST(Solve, IsNeverWorseThanItsStart) {
  Rng rng(6);
  const AssignProblem problem =
      random_assign({.nodes = 120, .forbidden = 0, .functions = 0, .moments = 40}, rng);
  const Result<AssignResult> good = solve(problem, {.steps = 4000});
  ASSERT_TRUE(good.ok() && good->bounds.cost);
  const Result<AssignResult> again = solve(problem, {.steps = 1, .start = good->assignment});
  ASSERT_TRUE(again.ok() && again->bounds.cost);
  EXPECT_LE(*again->bounds.cost, *good->bounds.cost);
  EXPECT_THAT(solve(problem, {.start = Assignment(3)}),
              refuses(ErrorCode::bad_input, "3 ... 120 nodes"));
  Assignment wrong = good->assignment;
  wrong[4] = 99;
  EXPECT_THAT(solve(problem, {.steps = 1, .start = wrong}),
              refuses(ErrorCode::bad_input, "node 4 ... option 99"));
}

TEST(Solve, SaysHowMuchIsMissingAndWhen) {
  const AssignProblem problem = parsed(R"({"problem": {"usage_limit": 10,
      "nodes": {"intervals": [[0,4],[2,6],[5,9]], "costs": [[1,1],[1],[1]],
                "usages": [[7,8],[6],[1]]},
      "edges": {"nodes": [], "costs": []}}})");
  EXPECT_THAT(solve(problem),
              refuses(ErrorCode::mismatch, "moment 2 ... 2 nodes ... 13 ... 3 above ... limit 10"));
  // The least usage would fit, but is forbidden.
  AssignProblem forbidden = problem;
  forbidden.usage_limit = 13;
  forbidden.nodes[0].costs[0] = kForbiddenCost;
  EXPECT_THAT(solve(forbidden), refuses(ErrorCode::mismatch, "moment 2 ... 1 above ... limit 13"));
  forbidden.nodes[1].costs[0] = kForbiddenCost;
  EXPECT_THAT(solve(forbidden), refuses(ErrorCode::mismatch, "node 1 ... 1 options ... forbidden"));
}

TEST(Solve, AddsCostsBeyond64Bits) {
  AssignProblem problem;
  for (int i = 0; i < 40; ++i)
    problem.nodes.push_back({0, 1, {kForbiddenCost - 1, kForbiddenCost - 2 - i}, {0, 0}});
  for (uint32_t i = 1; i < 40; ++i) problem.edges.push_back({i - 1, i, 0});
  problem.tables = {{kForbiddenCost - 1, 5, 7, kForbiddenCost - 5}};
  const Result<AssignResult> result = solve(problem, {.steps = 500});
  ASSERT_TRUE(result.ok() && result->bounds.cost);
  EXPECT_EQ(text(cost_of(problem, result->assignment).value()), text(*result->bounds.cost));
  EXPECT_LE(result->bounds.bound, *result->bounds.cost);
  EXPECT_LT(result->bounds.gap(), 1e-3);
  EXPECT_GT(*result->bounds.cost, Int128{39} * (kForbiddenCost - 100));
}

TEST(Solve, KeepsLimitsOfHugeUsages) {
  constexpr int64_t kHuge = int64_t{1} << 61;
  AssignProblem problem;
  for (int i = 0; i < 12; ++i) problem.nodes.push_back({0, 2, {0, 5}, {kHuge / 6, 1}});
  problem.usage_limit = kHuge;
  const Result<AssignResult> result = solve(problem, {.steps = 300});
  ASSERT_TRUE(result.ok() && result->bounds.cost) << result.error().to_string();
  EXPECT_TRUE(cost_of(problem, result->assignment));
  EXPECT_GE(*result->bounds.cost, Int128{30});  // six of twelve at most may be large
  EXPECT_LE(*result->bounds.cost, Int128{35});
  EXPECT_LE(result->bounds.bound, Int128{30});
}

TEST(Solve, TakesProblemsWithoutAnything) {
  const Result<AssignResult> result = solve({});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->verdict, AssignVerdict::optimal);
  EXPECT_EQ(text(*result->bounds.cost), "0");
}

TEST(Solve, EndsWhenItIsCancelled) {
  Rng rng(6);
  const AssignProblem problem =
      random_assign({.nodes = 120, .forbidden = 0, .functions = 0, .moments = 40}, rng);
  CancelToken token;
  token.cancel();
  const Result<AssignResult> result = solve(problem, {.cancel = &token});
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result->steps, 1);
}

TEST(Solve, ReducesFunctionsAndChainsToNothing) {
  // The second node follows the first, and the third is between both and a fourth.
  const AssignProblem problem = parsed(R"({"problem": {
      "nodes": {"intervals": [[0,1],[0,1],[0,1],[0,1]],
                "costs": [[3,1],[0,9],[2,2,1],[0,1]], "usages": [[0,0],[0,0],[0,0,0],[0,0]]},
      "edges": {"nodes": [[0,1],[1,2],[2,3]],
                "costs": [[0,1000000000000000000,1000000000000000000,0],
                          [0,5,5,4,0,1], [1,2,3,4,0,6]]}}})");
  const Result<Core> core = reduce(problem);
  ASSERT_TRUE(core.ok());
  EXPECT_EQ(core->nodes.size(), 0U);
  const Assignment best = restore(problem, *core, {});
  EXPECT_EQ(text(cost_of(problem, best).value()), text(least_cost(problem).value()));
  EXPECT_EQ(text(core->constant), text(least_cost(problem).value()));
}

TEST(Evaluate, AgreesWithThePlainJudge) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const AssignProblem problem = random_assign({.nodes = 6, .forbidden = 0.05}, rng);
    Assignment assignment;
    for (const AssignNode& node : problem.nodes)
      assignment.push_back(static_cast<uint32_t>(rng.below(node.costs.size())));
    const AssignValue value = evaluate(problem, assignment).value();
    const std::optional<Int128> cost = cost_of(problem, assignment);
    ASSERT_EQ(value.fits(problem), cost.has_value());
    EXPECT_EQ(check_fits(problem, value).ok(), cost.has_value());
    if (cost) {
      EXPECT_EQ(text(value.cost), text(*cost));
    }
  }
}

// The public files of the contest: within seconds, feasible, and not far from the best known cost.
TEST(PublicFiles, AreSolvedWell) {
  struct File {
    std::string_view letter;
    double best;
    double ratio;
  };
  constexpr File kFiles[] = {{"A", 6548641531, 1.05}, {"G", 217039, 1.1}};
  for (const File& file : kFiles) {
    const std::filesystem::path path = std::filesystem::path(HONE_TEST_DIR) /
                                       "../../shared/data/iopddl" /
                                       fmt::format("asplos-2025-iopddl-{}.json.gz", file.letter);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    const AssignProblem problem =
        parse_assign_json(read_file(path, kMaxAssignBytes).value(), file.letter).value();
    const Result<AssignResult> result = solve(problem, {.steps = 8000, .threads = 2});
    ASSERT_TRUE(result.ok() && result->bounds.cost) << file.letter;
    const AssignValue value = evaluate(problem, result->assignment).value();
    EXPECT_TRUE(value.fits(problem)) << file.letter;
    EXPECT_EQ(text(value.cost), text(*result->bounds.cost));
    EXPECT_LE(result->bounds.bound, value.cost);
    EXPECT_LE(static_cast<double>(value.cost), file.ratio * file.best) << file.letter;
    EXPECT_LE(static_cast<double>(result->bounds.bound), file.best) << file.letter;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
