#include "search/schedule_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "ir/text.h"
#include "kernel/schedule_text.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "tests/program/random_kernels.h"
#include "tests/search/toy_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}

std::shared_ptr<const KernelFacts> facts_of(std::string_view text) {
  return std::make_shared<KernelFacts>(body_of_all(prepare(parse_graph(text).value()).value()));
}

constexpr std::string_view kLayer = R"(graph @layer(%x: f32[64, 96], %w: f32[96, 80])
    -> f32[64, 80] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})";

TEST(ScheduleSearch, FindsWhatTheTableSaysIsBest) {
  const auto facts = facts_of("graph @g(%x: f32[5]) -> f32[5] { %y = exp %x return %y }");
  TableCost cost(std::make_shared<AnalyticCost>(target()));
  const ScheduleSpace all(facts->body, *facts, target());
  const Schedules members = all.enumerate(SIZE_MAX);
  const Schedule wanted = members[members.size() / 2];
  cost.set(facts->hash, wanted, 1e-12);
  ScheduleSearch space(facts, target(), all.simplest());
  const std::unique_ptr<PricedKernel> kernel = cost.kernel(facts, 1);
  PricedSchedules prices(space, *kernel);
  const SearchResult found = find_search("exhaustive").value()->run(space, prices).value();
  EXPECT_EQ(print(space.schedule(found.best)), print(wanted));
  EXPECT_EQ(found.trials, std::ssize(members));
}

// Members of a large space may be far apart.
TEST(ScheduleSearch, EndsInTimeBetweenMembers) {
  const AnalyticCost cost(target());
  const auto facts = facts_of(R"(graph @g(%x: f32[8, 64, 56, 56]) -> f32[8, 64, 56, 56] {
    %y = exp %x
    return %y
  })");
  const ScheduleSpace all(facts->body, *facts, target());
  ScheduleSearch space(facts, target(), all.simplest());
  const std::unique_ptr<PricedKernel> kernel = cost.kernel(facts, 1);
  PricedSchedules prices(space, *kernel);
  const SearchOptions options{.budget = {.seconds = 0.2}};
  const SearchResult found = find_search("exhaustive").value()->run(space, prices, options).value();
  EXPECT_EQ(found.end, SearchEnd::seconds);
}

// Members come up alone, points have one number, and no search is worse than the planner.
TEST(ScheduleSearch, ImprovesOnThePlanner) {
  const AnalyticCost cost(target());
  const auto facts = facts_of(kLayer);
  ScheduleChooser chooser(target(), cost, 4);
  const PricedSchedule planned = *chooser.choose(facts).value();
  for (const SearchRow& row : for_any_space()) {
    SCOPED_TRACE(row.name);
    ScheduleSearch space(facts, target(), planned.schedule);
    const std::unique_ptr<PricedKernel> kernel = cost.kernel(facts, 4);
    PricedSchedules prices(space, *kernel);
    const Result<SearchResult> run =
        row.get().run(space, prices, {.budget = {.trials = 600}, .seed = 1});
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->start_cost, planned.seconds);
    EXPECT_LE(run->cost, planned.seconds);
    EXPECT_EQ(run->cost, kernel->seconds(space.schedule(run->best)));
    std::set<std::string> texts;
    for (Point p = 0; p < 100; ++p) {
      texts.insert(space.text(p));
      EXPECT_EQ(space.point(space.schedule(p)), p);
      EXPECT_TRUE(space.space().has(space.schedule(p))) << space.text(p);
    }
    EXPECT_EQ(texts.size(), 100U);
  }
}

TEST(ScheduleSearch, StepsFromAnyMemberToOthers) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .max_elements = 64});
    Rng rng(seed);
    for (NodeId node : graph.nodes()) {
      if (is_leaf(graph.opcode(node)) || is_command(graph, node)) continue;
      if (!is_fusible(graph.opcode(node))) continue;
      const KernelBody body = body_of(graph, std::span(&node, 1), {});
      const auto facts = std::make_shared<KernelFacts>(body);
      const ScheduleSpace all(facts->body, *facts, target());
      ScheduleSearch space(facts, target(), all.simplest());
      Point at = space.start();
      for (int i = 0; i < 10; ++i) {
        for (size_t along = 0; along < space.coordinates(at); ++along)
          for (Point next : space.neighbours(at, along, 5, rng))
            EXPECT_TRUE(next != at && all.has(space.schedule(next))) << space.text(next);
        const std::optional<Point> next = space.step(at, rng);
        if (!next) break;
        EXPECT_NE(*next, at);
        EXPECT_TRUE(all.has(space.schedule(*next))) << space.text(*next);
        at = *next;
      }
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
