#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "assign/core_search.h"
#include "assign/solve.h"
#include "assign/walk.h"
#include "tests/assign/plain_judge.h"
#include "tests/assign/random_problem.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"

// The searches behind one interface, what they know of a change, and the walk that some take.

namespace hone::HONE_FILE {
namespace {

using tested::cost_of;
using tested::least_cost;
using tested::random_assign;
using tested::refuses;

std::string text(Int128 number) { return fmt::format("{}", number); }

TEST(CoreSearches, FindTheLeastCostOfSmallProblems) {
  int solved = 0, without = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    if (!tested::in_share(seed, 10)) continue;
    Rng rng(seed);
    const AssignProblem problem = random_assign(
        {.nodes = rng.between(1, 5), .options = 3, .room = rng.uniform(-0.1, 0.9)}, rng);
    const std::optional<Int128> least = least_cost(problem);
    for (const CoreSearchRow& row : core_searches()) {
      const Result<AssignResult> result =
          solve(problem, {.search = std::string(row.name), .steps = 3000, .reduce = seed % 2 == 0});
      if (!least) {
        EXPECT_FALSE(result.ok() && result->bounds.cost) << row.name << seed;
        ++without;
        continue;
      }
      ASSERT_TRUE(result.ok()) << row.name << result.error().to_string();
      ASSERT_TRUE(result->bounds.cost) << row.name << seed;
      EXPECT_EQ(text(*result->bounds.cost), text(*least)) << row.name << seed;
      EXPECT_EQ(text(cost_of(problem, result->assignment).value()), text(*least));
      EXPECT_LE(result->bounds.bound, *least);
      ++solved;
    }
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(without, 4);
}

AssignProblem large() {
  Rng rng(3);
  return random_assign({.nodes = 120, .forbidden = 0, .functions = 0, .room = 0.5, .moments = 40},
                       rng);
}

TEST(CoreSearches, KeepTheLimitAndGiveTheSameByTheSameSeed) {
  const AssignProblem problem = large();
  for (const CoreSearchRow& row : core_searches()) {
    const AssignOptions options = {.search = std::string(row.name), .steps = 2000, .seed = 7};
    AssignOptions other = options;
    other.threads = 2;
    const AssignResult one = solve(problem, options).value(), two = solve(problem, other).value();
    EXPECT_EQ(one.assignment, two.assignment) << row.name;
    EXPECT_EQ(one.steps, two.steps) << row.name;
    ASSERT_TRUE(one.bounds.cost) << row.name;
    EXPECT_EQ(text(cost_of(problem, one.assignment).value()), text(*one.bounds.cost)) << row.name;
  }
}

TEST(CoreSearches, GoOnFromAStart) {
  const AssignProblem problem = large();
  const AssignResult good = solve(problem, {.steps = 1000}).value();
  for (const CoreSearchRow& row : core_searches()) {
    const AssignResult again =
        solve(problem, {.search = std::string(row.name), .steps = 50, .start = good.assignment})
            .value();
    EXPECT_LE(*again.bounds.cost, *good.bounds.cost) << row.name;
  }
}

TEST(CoreSearches, RefuseANameThatThereIsNot) {
  EXPECT_THAT(solve(large(), {.search = "chains"}),
              refuses(ErrorCode::usage, "'chains' ... windows, chain, greedy, random"));
}

// ---- What a change comes to ---------------------------------------------------------------------

TEST(CoreState, KnowsTheCostAndUsageAfterManyChanges) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const AssignProblem problem =
        random_assign({.nodes = 20, .forbidden = 0, .room = 0.3, .moments = 12}, rng);
    const Result<Core> core = reduce(problem, {.reduce = seed % 2 == 0});
    if (!core.ok()) continue;
    const CoreTables tables(*core);
    CoreState state(*core, tables), whole(*core, tables);
    const std::vector<double> penalties(core->slack.size(), 3);
    state.set(std::vector<uint32_t>(core->nodes.size()));
    state.set_penalties(penalties);
    for (int i = 0; i < 200 && !core->nodes.empty(); ++i) {
      const auto node = static_cast<uint32_t>(rng.below(core->nodes.size()));
      state.take(node, static_cast<uint32_t>(rng.below(core->nodes[node].options())));
      whole.set(state.options());
      whole.set_penalties(penalties);
      ASSERT_EQ(state.cost(), whole.cost()) << seed;
      ASSERT_EQ(state.penalty(), whole.penalty()) << seed;
      ASSERT_EQ(state.free(), whole.free()) << seed;
      ASSERT_EQ(state.full_times(), whole.full_times()) << seed;
      const AssignValue value = evaluate(problem, restore(problem, *core, state.options())).value();
      if (value.forbidden == 0)
        ASSERT_EQ(text(value.cost), text(static_cast<Int128>(state.cost()) + core->constant))
            << seed;
      ASSERT_EQ(state.full_times() == 0, value.peak <= problem.limit()) << seed;
    }
  }
}

// ---- The walk -----------------------------------------------------------------------------------

// Ten places in a circle; a place is a rank.
struct Circle {
  int place = 0, before = 0, best = 0;
  int kept = 0;
  double usual = 10;

  bool move(Rng& rng) {
    before = place;
    place = (place + (rng.chance(0.5) ? 1 : 9)) % 10;
    return true;
  }
  void undo() { place = before; }
  void keep() {
    ++kept;
    best = std::min(best, place);
  }
  void back_to_best() { place = best; }
  double rank() const { return place; }
  double scale() const { return usual; }
};

// In the long run a place is visited in proportion to exp(-rank / (heat * scale)).
TEST(Walk, VisitsWhatIsBetterMoreOften) {
  Circle circle;
  Rng rng(5);
  std::array<int, 10> visits = {};
  constexpr int kSteps = 400'000;
  for (int i = 0; i < kSteps; ++i) {
    walk_step(circle, 0.3, rng);
    ++visits[circle.place];
  }
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += std::exp(-i / 3.0);
  for (int i = 0; i < 10; ++i)
    EXPECT_NEAR(visits[i] / (kSteps * std::exp(-i / 3.0) / sum), 1, 0.1) << i;
}

// At this heat no step that is worse by a tenth is taken.
TEST(Walk, OfAChainStaysWhereAllIsWorse) {
  Circle circle = {.place = 4, .best = 4};
  Rng rng(5);
  MarkovChain chain;
  for (int i = 0; i < 5000; ++i) chain.step(circle, rng);
  EXPECT_EQ(circle.best, 0);
  EXPECT_EQ(circle.place, 0);
  EXPECT_EQ(circle.kept, 4);
}

TEST(Walk, CoolsDownToTheBest) {
  Circle circle = {.place = 5, .best = 5, .usual = 100};
  Rng rng(5);
  CoolingWalk cooling;
  for (int i = 0; i < 5000; ++i) cooling.step(circle, i / 5000.0, rng);
  EXPECT_EQ(circle.place, 0);
  EXPECT_GT(circle.kept, 100);
}

}  // namespace
}  // namespace hone::HONE_FILE
