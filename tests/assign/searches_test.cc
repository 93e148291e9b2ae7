#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

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
using tested::text;

// A search of a core, without what solve() does beside it.
struct Searched {
  Core core;
  CoreTables tables;
  std::unique_ptr<CoreSearch> search;

  Searched(const CoreSearchRow& row, Core given)
      : core(std::move(given)), tables(core), search(row.make(core, tables, 7)) {}
};

TEST(CoreSearches, FindTheLeastCostOfSmallProblems) {
  int solved = 0, without = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    if (!tested::in_share(seed, 10)) continue;
    Rng rng(seed);
    const AssignProblem problem = random_assign(
        {.nodes = rng.between(1, 5), .options = 3, .room = rng.uniform(-0.1, 0.9)}, rng);
    const Result<Core> core = reduce(problem, {.reduce = seed % 2 == 0});
    const std::optional<Int128> least = least_cost(problem);
    if (!core.ok()) {
      EXPECT_FALSE(least) << seed;
      ++without;
      continue;
    }
    for (const CoreSearchRow& row : core_searches()) {
      Searched one(row, *core);
      one.search->start(std::vector<uint32_t>(core->nodes.size()));
      std::optional<Int128> cost;
      for (int i = 0; i < 3000 && (!cost || cost != least); ++i) {
        one.search->step();
        cost = cost_of(problem, restore(problem, *core, one.search->best()));
      }
      ASSERT_EQ(cost.has_value(), least.has_value()) << row.name << seed;
      if (cost) EXPECT_EQ(text(*cost), text(*least)) << row.name << seed;
      ++(cost ? solved : without);
    }
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(without, 4);
}

// Without limits each ends with the proof, and so it does where nothing is within the limits.
TEST(CoreSearches, EndWhereASmallProblemIsProved) {
  AssignProblem impossible;
  impossible.nodes = std::vector<AssignNode>(3, {.costs = {0, 1}, .usages = {0, 0}});
  // No two of three nodes may take the same of two options.
  impossible.tables = {{kForbiddenCost, 0, 0, kForbiddenCost}};
  impossible.edges = {{0, 1, 0}, {1, 2, 0}, {0, 2, 0}};
  AssignProblem possible = impossible;
  possible.edges.pop_back();
  for (const CoreSearchRow& row : core_searches())
    for (const bool reduced : {true, false}) {
      // Time ends it if it goes on for ever; then there is neither an error nor a proof.
      const AssignOptions options = {
          .search = std::string(row.name), .seconds = 20, .reduce = reduced};
      const Result<AssignResult> none = solve(impossible, options);
      ASSERT_FALSE(none.ok()) << row.name;
      EXPECT_EQ(none.error().code(), ErrorCode::mismatch) << row.name << none.error().to_string();
      const AssignResult result = solve(possible, options).value();
      EXPECT_EQ(result.verdict, AssignVerdict::optimal) << row.name;
      EXPECT_EQ(text(result.bounds.cost.value()), "1") << row.name;
    }
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
  const Assignment good = solve(problem, {.steps = 1000})->assignment;
  const Core core = reduce(problem).value();
  std::vector<uint32_t> start;
  for (const std::optional<uint32_t> option : project(core, good)) start.push_back(option.value());
  const CoreTables tables(core);
  CoreState state(core, tables);
  state.set(start);
  ASSERT_EQ(state.full_times(), 0);
  for (const CoreSearchRow& row : core_searches()) {
    Searched one(row, core);
    one.search->start(start);
    EXPECT_EQ(one.search->best(), start) << row.name;
    for (int i = 0; i < 50; ++i) one.search->step();
    EXPECT_LE(one.search->best_cost(), state.cost()) << row.name;
    EXPECT_EQ(one.search->best_full_times(), 0) << row.name;
  }
}

// The best is one that was seen, with its cost, after any way to and from it.
TEST(CoreSearches, KnowTheirBest) {
  const Core core = reduce(large(), {.reduce = false}).value();
  const CoreTables tables(core);
  CoreState state(core, tables);
  for (const CoreSearchRow& row : core_searches()) {
    Searched one(row, core);
    one.search->start(std::vector<uint32_t>(core.nodes.size()));
    double before = one.search->best_cost();
    int64_t full = one.search->best_full_times();
    for (int i = 0; i < 200; ++i) {
      one.search->step();
      state.set(one.search->best());
      ASSERT_EQ(state.cost(), one.search->best_cost()) << row.name << i;
      ASSERT_EQ(state.full_times(), one.search->best_full_times()) << row.name << i;
      ASSERT_LE(std::pair(state.full_times(), state.cost()), std::pair(full, before)) << row.name;
      before = state.cost();
      full = state.full_times();
    }
  }
}

// A step asks for a few nodes, however many there are: it takes no time for the others.
TEST(CoreSearches, TakeAsLongForAStepOfAnyCore) {
  const auto core_of = [](int64_t nodes) {
    Rng rng(3);
    return reduce(random_assign({.nodes = nodes, .forbidden = 0, .functions = 0, .room = 0.5}, rng),
                  {.reduce = false})
        .value();
  };
  const Core few = core_of(1000), many = core_of(64'000);
  for (const CoreSearchRow& row : core_searches()) {
    if (&row == &core_searches().front()) continue;  // a round of windows is as long as the core
    Searched small(row, few), large(row, many);
    const auto seconds = [](Searched& of) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 20; ++i) of.search->step();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    small.search->start(std::vector<uint32_t>(few.nodes.size()));
    large.search->start(std::vector<uint32_t>(many.nodes.size()));
    double least = 1e9;  // of the ratios: turns that other work slows do not count
    for (int turn = 0; turn < 10; ++turn) {
      const double by_small = seconds(small);
      least = std::min(least, seconds(large) / by_small);
    }
    EXPECT_LT(least, 16) << row.name;  // caches are worse; the nodes are 64 times as many
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
  MarkovChain chain(0.002, 1000);
  for (int i = 0; i < 5000; ++i) chain.step(circle, rng);
  EXPECT_EQ(circle.best, 0);
  EXPECT_EQ(circle.place, 0);
  EXPECT_EQ(circle.kept, 4);
}

TEST(Walk, OfAChainGoesBackAfterItsSteps) {
  Circle circle = {.place = 4, .best = 0};
  Rng rng(5);
  MarkovChain chain(1e9, 7);  // so hot that it takes whatever comes
  for (int i = 1; i <= 700; ++i) {
    chain.step(circle, rng);
    circle.best = 0;
    if (i % 7 == 0) ASSERT_EQ(circle.place, 0);
  }
  EXPECT_EQ(circle.kept, 700);
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
