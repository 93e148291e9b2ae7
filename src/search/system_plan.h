#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "cost/system_timeline.h"
#include "plan/plan.h"
#include "planner/heuristics.h"
#include "rewrite/prepare.h"
#include "target/system.h"

// Plans for a graph that all devices of a System run. The timeline of the system chooses the
// products that are divided into steps (rewrite/overlap.h), and the schedules of collectives.

namespace hone {

struct SystemPlanOptions {
  bool overlaps = true;         // products may be divided
  std::vector<Plan> said = {};  // of each target, what is decided already; empty: nothing
  PrepareOptions prepare = {};
  Heuristics heuristics = {};
  const CancelToken* cancel = nullptr;
};

// A product that could be divided, and what became of it.
struct ChosenOverlap {
  std::string value;    // its result
  std::string overlap;  // name(Overlap); empty: it stays as it is
  double before = 0;    // seconds of the product and its exchange alone, undivided
  double after = 0;     // and divided, in the best way
};

struct SystemPlans {
  std::vector<Graph> graphs;  // of each target, prepared, as the plan rewrites it
  std::vector<Plan> plans;    // complete, with the rewrites
  std::vector<ChosenOverlap> overlaps;
  double seconds = 0;    // of the timeline, from the start to the last device's end
  double undivided = 0;  // the same if no product is divided
};

// A product is divided if that makes it and its exchange faster by kLeastGain, alone, and all of
// the graph no slower. `given` has sizes that are numbers; `costs` are of the system's targets.
// Deterministic. Errors are those of planning, and of system_timeline().
Result<SystemPlans> plan_for_system(const Graph& given, const System& system,
                                    std::span<const std::shared_ptr<const Cost>> costs,
                                    const SystemPlanOptions& options = {});

// The timeline of these plans; `merge` is that of system_timeline().
Result<SystemTimeline> timeline_of(const SystemPlans& plans, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   bool merge = true);

// The share of the time that a division must save: prices are not exact.
inline constexpr double kLeastGain = 0.03;

}  // namespace hone
