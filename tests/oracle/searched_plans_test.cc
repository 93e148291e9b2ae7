#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "oracle/differential.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "search/plan_search.h"
#include "search/schedule_search.h"
#include "tests/base/share_testing.h"

// Plans that searches find, completed and carried out, against the reference.

namespace hone::HONE_FILE {
namespace {

// The best plan of a short search from the planner's, and for one of its kernels the best schedule
// of another.
Plan searched_plan(const Graph& graph, const Target& target, uint64_t seed) {
  const AnalyticCost cost(target);
  KernelStore store;
  const Plan planned = complete(graph, {}, target, cost, {.known = &store}).value();
  const auto editor = PlanEditor::open(graph, planned, target).value();
  PlanCost price(*editor, cost, store, planner_schedules(target, cost, store));
  PlanSearch space(*editor, kEditsOfShape);
  PricedPlans prices(space, price);
  const std::string_view names[] = {"random", "evolutionary", "annealing", "beam", "descent"};
  const Search& search = *find_search(names[seed % std::size(names)]).value();
  const SearchOptions options{.budget = {.trials = 40}, .seed = seed};
  const SearchResult found = search.run(space, prices, options).value();
  EXPECT_LE(found.cost, found.start_cost);
  Plan plan = space.plan(found.best, price).value();
  space.move_to(found.best);
  const FrameEditor& frame = editor->main();
  for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
    if (!frame.planned().steps[s].is_kernel) continue;
    const uint64_t hash = frame.kernel(s).hash;
    const auto facts = std::make_shared<const KernelFacts>(frame.body(s), hash);
    ScheduleSearch schedules(facts, target, plan.schedule.at(hash));
    const std::unique_ptr<PricedKernel> kernel = cost.kernel(facts, *plan.threads);
    PricedSchedules priced(schedules, *kernel);
    plan.schedule[hash] = schedules.schedule(search.run(schedules, priced, options).value().best);
  }
  return complete(graph, plan, target, cost).value();
}

TEST(SearchedPlans, ComputeTheSameAsTheReference) {
  const Target host = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = host.cores}).value();
  for (uint64_t seed = 0; seed < 30; ++seed) {
    if (!tested::in_share(seed, 3)) continue;
    SCOPED_TRACE(seed);
    DifferentialCase one = random_case(seed, host, host.isa);
    const Graph graph = prepare(one.graph).value();
    one.isa = host.isa;
    one.plan = searched_plan(graph, host, seed);
    const DifferentialOutcome outcome = run_case(one, host, team);
    EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << print(one);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
