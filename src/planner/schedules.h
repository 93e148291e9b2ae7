#pragma once

#include "cost/plan_cost.h"
#include "planner/planner.h"

namespace hone {

// Chooses the cheapest of a few legal schedules of a body, once per body; a stage of a chain has
// one thread. Planning spends its time here, so this is where it stops when it is cancelled.
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
  const Target& target() const { return target_; }
  const Cost& cost() const { return cost_; }
  int64_t threads() const { return threads_; }
  const Heuristics& heuristics() const { return options_.heuristics; }
  KernelStore& known() { return store_; }

 private:
  const Target& target_;
  const Cost& cost_;
  const int64_t threads_;
  const PlannerOptions options_;
  KernelStore own_;  // where nobody gives one
  KernelStore& store_;
  KernelStore unversioned_;  // prices of a Cost without a version
  KernelStore::Known& known_;
};

// Answers a PlanCost: schedules as they are chosen here, for any number of threads. All three
// outlive it.
ChooseSchedule planner_schedules(const Target& target, const Cost& cost, KernelStore& store);

}  // namespace hone
