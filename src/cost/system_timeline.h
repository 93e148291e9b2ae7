#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "plan/plan.h"
#include "program/program.h"
#include "target/system.h"
#include "timeline/collective_price.h"
#include "timeline/held_memory.h"
#include "timeline/system_jobs.h"
#include "timeline/timeline.h"

// When each job of a program starts and ends that runs on all devices of a System. Each device runs
// the whole program on inputs of its own; collectives of the graph are what devices exchange.
// Nothing is run.
//
// A task begins as soon as what it needs is there and its device is free; a collective does not
// keep the device busy but for its copies and sums.

namespace hone {

// The plan for the devices of one target.
struct TargetPlan {
  const Graph* graph = nullptr;  // prepared
  const Plan* plan = nullptr;    // complete
  const Cost* cost = nullptr;
  const Program* program = nullptr;  // null: it was not lowered, and the memory is not known
};

struct TimedExchange {
  std::string name;  // of its result
  CollectiveKind kind = CollectiveKind::all_reduce;
  size_t groups = 0;
  size_t members = 0;        // of the largest group
  int64_t bytes = 0;         // of the whole
  CollectivePrice schedule;  // of the plan; and its time alone
};

struct SystemTimeline {
  SystemJobs jobs;
  Timeline timeline;
  uint32_t first_step = 0;  // the first job of an exchange
  std::vector<TimedExchange> exchanges;
  std::vector<HeldMemory> memory;  // of each device; empty: not known
};

// True if devices exchange something in the graph: it cannot be lowered for one device alone.
bool has_exchanges(const Graph& graph);

// `plans` are those of the system's targets; the first one has the schedules of collectives, and
// the others say the same. Errors: sizes are open; a collective names devices that the system does
// not have, or stands in a region; there are more than kMostTimedJobs.
Result<SystemTimeline> system_timeline(const System& system, std::span<const TargetPlan> plans);
inline constexpr size_t kMostTimedJobs = 2'000'000;

// Gives each collective of the graph and of its regions that has no schedule in the plan the one
// that is the best on the system by price, alone. Left open are those whose size is open, and those
// of too many messages to be priced. Error: a collective names devices that the system does not
// have.
Status add_best_schedules(const Graph& graph, const System& system, Plan& plan);

}  // namespace hone
