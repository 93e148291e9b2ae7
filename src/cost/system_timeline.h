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
#include "timeline/shared_jobs.h"
#include "timeline/timeline.h"

// When each job of a program starts and ends that runs on all devices of a System. Each device runs
// the whole program on inputs of its own; collectives of the graph are what devices exchange.
// Nothing is run.
//
// A task begins as soon as what it needs is there and its device is free; a collective does not
// keep the device busy but for its copies and sums. One in a region does: it takes its time alone,
// as often as the region runs.

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
  int64_t times = 1;  // in a step: in a loop, as often as it runs
  size_t groups = 0;
  size_t members = 0;        // of the largest group
  int64_t bytes = 0;         // of the whole
  CollectivePrice schedule;  // of the plan; and its time alone
};

// Devices that do the same at the same time are simulated once: queues and links are those of their
// classes (timeline/alike.h).
struct SystemTimeline {
  Topology topology;
  SharedJobs shared;
  ClassJobs classes;
  Timeline timeline;
  uint32_t first_step = 0;  // of the shared jobs, the first one of an exchange
  std::vector<TimedExchange> exchanges;
  // The bytes that a device of each class needs (program/device_memory.h); empty: not known.
  std::vector<int64_t> memory;

  const Jobs& jobs() const { return classes.jobs; }
  const std::string& name_of(uint32_t job) const { return shared.name_of(classes.numbers[job]); }
  bool is_step(uint32_t job) const { return classes.numbers[job] >= first_step; }
  // "3", "0-7", "0-3, 8, 12-15, ..."
  std::string devices_name(uint32_t of_class) const;
  // "ring 0 > 1", "ring 0 > 1 and 7 alike"
  std::string link_name(uint32_t of_class) const;
};

// True if devices exchange something in the graph: it cannot be lowered for one device alone.
bool has_exchanges(const Graph& graph);

// `plans` are those of the system's targets; the first one has the schedules of collectives, and
// the others say the same. Errors: sizes are open; a collective names devices that the system does
// not have; there are more than kMostTimedJobs. Shards of groups of more
// than kExactMembers devices are all as long as the first one.
Result<SystemTimeline> system_timeline(const System& system, std::span<const TargetPlan> plans,
                                       bool merge = true);
// Traces and pictures have a track for each device up to here, and else for devices that are alike.
inline constexpr int64_t kMostDrawnDevices = 64;
inline constexpr size_t kMostTimedJobs = 2'000'000;

// Gives each collective of the graph and of its regions that has no schedule in the plan the one
// that is the best on the system by price, alone. Left open are those whose size is open, and those
// of too many messages to be priced. Error: a collective names devices that the system does not
// have.
Status add_best_schedules(const Graph& graph, const System& system, Plan& plan);

}  // namespace hone
