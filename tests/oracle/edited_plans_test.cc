#include <gtest/gtest.h>

#include "oracle/differential.h"
#include "plan/plan_space.h"
#include "rewrite/prepare.h"

// Plans that were made by edits, completed and carried out, against the reference.

namespace hone::HONE_FILE {
namespace {

// The plan after some random edits of nothing, those that are accepted.
Plan edited_plan(const Graph& graph, const Target& target, uint64_t seed) {
  const std::unique_ptr<PlanEditor> plan = PlanEditor::open(graph, Plan(), target).value();
  Rng rng(seed);
  for (int i = 0; i < 12; ++i) {
    const std::vector<OpenEdit> open = PlanSpace(plan->main()).edits(rng.pick(kEditKinds));
    if (!open.empty() && apply(plan->main(), rng.pick(open), rng).ok()) plan->commit();
  }
  Plan edited = plan->to_plan();
  edited.schedule.clear();  // the planner may lay out what is open so that these kernels are others
  return edited;
}

TEST(EditedPlans, ComputeTheSameAsTheReference) {
  const Target host = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = host.cores}).value();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    DifferentialCase one = random_case(seed, host, host.isa);
    const Graph graph = prepare(one.graph).value();
    one.plan = edited_plan(graph, host, seed);
    const DifferentialOutcome outcome = run_case(one, host, team);
    EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << print(one);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
