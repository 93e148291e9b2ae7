#include "timeline/collective_price.h"

#include <algorithm>
#include <tuple>

#include "timeline/step_jobs.h"
#include "timeline/timeline.h"

namespace hone {
namespace {

int64_t messages_of(std::span<const DeviceProgram> programs) {
  int64_t sends = 0;
  for (const DeviceProgram& program : programs)
    sends += std::ranges::count(program.steps, StepKind::send, &DeviceStep::kind);
  return sends;
}

// A permute has one for each pair. An all_reduce by a ring, or directly, has nearly as many as
// this.
int64_t most_messages(std::span<const Collective> groups) {
  int64_t messages = 0;
  for (const Collective& each : groups) {
    const auto members = std::ssize(each.devices);
    messages +=
        each.kind == CollectiveKind::permute ? std::ssize(each.pairs) : 2 * members * members;
  }
  return messages;
}

class Pricer {
 public:
  Pricer(std::span<const Collective> groups, int64_t element_bytes, const System& system)
      : groups_(groups), system_(system) {
    options_.element_bytes = element_bytes;
    for (const DeviceRun& run : system.devices)
      options_.rates.insert(options_.rates.end(), static_cast<size_t>(run.count),
                            step_rates(system.targets[run.target]));
  }

  Status check() const {
    for (const Collective& group : groups_) HONE_TRY(hone::check(group));
    if (const int64_t messages = most_messages(groups_); messages > kMostPricedMessages)
      return over_limit("{} of {} groups of {} devices may have {} messages, more than {}",
                        name(groups_.front().kind), groups_.size(), groups_.front().devices.size(),
                        messages, kMostPricedMessages)
          .with_hint("name a schedule, or ask for fewer devices");
    return {};
  }

  Result<std::vector<DeviceProgram>> programs(const CollectiveSchedule& schedule) const {
    std::vector<DeviceProgram> all;
    for (const Collective& group : groups_)
      for (DeviceProgram& program : HONE_TRY(step_programs(group, schedule)))
        all.push_back(std::move(program));
    return all;
  }

  Result<double> seconds(std::span<const DeviceProgram> programs) const {
    SystemJobs jobs(system_);
    HONE_TRY(add_steps(jobs, programs, options_));
    return seconds_of(HONE_TRY(Timeline::open(jobs.jobs())).end());
  }

 private:
  std::span<const Collective> groups_;
  const System& system_;
  StepJobOptions options_;
};

}  // namespace

Result<double> collective_seconds(std::span<const Collective> groups,
                                  const CollectiveSchedule& schedule, int64_t element_bytes,
                                  const System& system) {
  const Pricer pricer(groups, element_bytes, system);
  return pricer.seconds(HONE_TRY(pricer.programs(schedule)));
}

Result<std::vector<CollectivePrice>> collective_prices(std::span<const Collective> groups,
                                                       int64_t element_bytes,
                                                       const System& system) {
  if (groups.empty()) return bad_input("there is no group that a schedule could be for");
  const Pricer pricer(groups, element_bytes, system);
  HONE_TRY(pricer.check());
  std::vector<CollectivePrice> priced;
  for (CollectiveSchedule schedule : schedules_of(groups.front()))
    for (const int32_t pieces : kTriedPieces) {
      schedule.pieces = pieces;
      const std::vector<DeviceProgram> programs = HONE_TRY(pricer.programs(schedule));
      if (pieces > 1 && messages_of(programs) > kMostPiecedMessages) break;
      priced.push_back({schedule, HONE_TRY(pricer.seconds(programs))});
    }
  std::ranges::sort(priced, {}, [](const CollectivePrice& one) {
    const CollectiveSchedule& schedule = one.schedule;
    return std::tuple(one.seconds, schedule.pieces, schedule.algorithm, schedule.neighbours);
  });
  return priced;
}

Result<CollectivePrice> best_schedule(std::span<const Collective> groups, int64_t element_bytes,
                                      const System& system) {
  return HONE_TRY(collective_prices(groups, element_bytes, system)).front();
}

}  // namespace hone
