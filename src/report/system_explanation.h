#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "plan/plan.h"
#include "program/program.h"
#include "report/timeline_trace.h"
#include "target/system.h"
#include "timeline/collective_price.h"
#include "timeline/held_memory.h"
#include "timeline/system_jobs.h"
#include "timeline/timeline.h"

// When each job of a program starts and ends that runs on all devices of a System, and where the
// time goes. Each device runs the whole program on inputs of its own; collectives of the graph are
// what devices exchange. Nothing is run.
//
// A task begins as soon as what it needs is there and its device is free; a collective does not
// keep the device busy but for its copies and sums. Collectives take the schedule of the best price
// (timeline/collective_price.h).

namespace hone {

// The plan for the devices of one target.
struct TargetPlan {
  const Graph* graph = nullptr;  // prepared
  const Plan* plan = nullptr;    // complete
  const Cost* cost = nullptr;
  const Program* program = nullptr;  // null: it was not lowered, and the memory is not known
};

struct ExplainedExchange {
  std::string name;  // of its result
  CollectiveKind kind = CollectiveKind::all_reduce;
  size_t groups = 0;
  size_t members = 0;        // of the largest group
  int64_t bytes = 0;         // of the whole
  CollectivePrice schedule;  // alone
};

struct SystemExplanation {
  SystemJobs jobs;
  Timeline timeline;
  uint32_t first_step = 0;  // the first job of an exchange
  std::vector<ExplainedExchange> exchanges;
  std::vector<HeldMemory> memory;  // of each device; empty: not known
};

// True if devices exchange something in the graph: it cannot be lowered for one device alone.
bool has_exchanges(const Graph& graph);

// `plans` are those of the system's targets. Errors: sizes are open; a collective names devices
// that the system does not have, or stands in a region; there are more than kMostExplainedJobs.
Result<SystemExplanation> explain_system(const System& system, std::span<const TargetPlan> plans);
inline constexpr size_t kMostExplainedJobs = 2'000'000;

// Tables of where the time goes: on the longest chain of jobs, on each device, on each link, and by
// collective. At most `most` rows each.
std::string explanation_text(const System& system, const SystemExplanation& explanation,
                             std::string_view model, size_t most);

// The names of the jobs, for add_timeline().
TimelineNames names_of(const SystemExplanation& explanation);

}  // namespace hone
