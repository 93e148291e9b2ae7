#pragma once

#include <memory>

#include "cost/plan_cost.h"
#include "planner/planner.h"

namespace hone {

// Chooses the cheapest of a few legal schedules of a body, once per body; a stage of a chain has
// one thread. A kernel of which the Cost has no choices has the schedule that the baseline chooses.
// Planning spends its time here, so this is where it stops when it is cancelled.
class ScheduleChooser {
 public:
  ScheduleChooser(const Target& target, const Cost& cost, int64_t threads,
                  const PlannerOptions& options = {});
  ScheduleChooser(const ScheduleChooser&) = delete;
  // The pointer stays good. Errors: interrupted.
  Result<const PricedSchedule*> choose(const KernelBody& body);
  Result<const PricedSchedule*> choose(const std::shared_ptr<const KernelFacts>& facts);
  // The cheapest way found to divide these loops among the threads. Each sum adds in the order in
  // which this schedule has it: only loops over results change, and their blocks in a cache.
  Result<Schedule> divided(const KernelBody& body, const Schedule& schedule);
  // The one by the Cost's baseline; this one, if there is none.
  ScheduleChooser& usual() { return usual_ != nullptr ? *usual_ : *this; }
  const Target& target() const { return target_; }
  const Cost& cost() const { return cost_; }
  int64_t threads() const { return threads_; }
  const Heuristics& heuristics() const { return options_.heuristics; }
  KernelStore& known() { return store_; }

 private:
  Result<PricedSchedule> chosen(const std::shared_ptr<const KernelFacts>& facts);

  const Target& target_;
  const Cost& cost_;
  const int64_t threads_;
  const PlannerOptions options_;
  KernelStore own_;  // where nobody gives one
  KernelStore& store_;
  KernelStore unversioned_;  // prices of a Cost without a version
  KernelStore::Known& known_;
  std::unique_ptr<ScheduleChooser> usual_;  // null: the Cost has no baseline
};

// Answers a PlanCost: schedules as they are chosen here, for any number of threads. All three
// outlive it.
ChooseSchedule planner_schedules(const Target& target, const Cost& cost, KernelStore& store);

}  // namespace hone
