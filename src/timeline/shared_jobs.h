#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/alike.h"
#include "transport/collective.h"

// The jobs of a program that all devices of a System share (alike.h), with their names, and the
// steps of collectives among them. Unlike SystemJobs it says what devices do once, for all.

namespace hone {

class SharedJobs {
 public:
  explicit SharedJobs(size_t devices) : devices_(devices) {}

  // The name of all jobs from now on, for people: "all_reduce %grad".
  void name(std::string_view name) { names_.emplace_back(name); }

  // A set of devices; kAll for all of them.
  uint32_t set(std::vector<bool> devices);
  uint32_t pattern(Pattern pattern);

  // Each of these adds a job of the devices of a set, and gives its number.
  uint32_t compute(uint32_t doers, std::vector<double> seconds, std::vector<uint32_t> after);
  uint32_t send(uint32_t doers, uint32_t pattern, double bytes);
  // Takes no time.
  uint32_t join(uint32_t doers, std::vector<uint32_t> after, std::vector<uint32_t> got = {});

  DeviceJob& job(uint32_t number) { return program_.jobs[number]; }
  size_t devices() const { return devices_; }
  const SharedProgram& program() const { return program_; }
  const std::string& name_of(uint32_t number) const { return names_[name_of_[number]]; }

 private:
  uint32_t add(DeviceJob job);

  size_t devices_;
  SharedProgram program_;
  std::map<std::vector<bool>, uint32_t> sets_;
  std::map<Pattern, uint32_t> patterns_;
  std::vector<std::string> names_ = {""};
  std::vector<uint32_t> name_of_;  // of each job
};

// A collective of several groups of devices at once.
struct GroupedCollective {
  Collective collective;                          // of devices 0 to members - 1
  std::vector<std::vector<int32_t>> groups = {};  // the device that each member is
};

// Groups that do the same. Shards of more than kExactMembers members are all as long as the first.
GroupedCollective grouped(std::span<const Collective> groups);
inline constexpr int64_t kExactMembers = 64;

// The seconds of each target for each byte that a copy or an addition writes. None: no time.
struct SharedRates {
  std::vector<double> copy = {}, add = {};
};
SharedRates shared_rates(const System& system);

// Adds the steps, which begin after the jobs `begin` of their device. Each device that is a member
// has its output after those of the given jobs that it does. A send is complete at once.
// Errors: the schedule does not fit; a group names devices that there are not, or one of them
// twice; check_size().
Result<std::vector<uint32_t>> add_steps(SharedJobs& jobs, const GroupedCollective& grouped,
                                        const CollectiveSchedule& schedule, int64_t element_bytes,
                                        const SharedRates& rates,
                                        const std::vector<uint32_t>& begin = {});

// Their seconds if nothing else happens. Over the limit, too, if there are more jobs than `most`.
Result<double> seconds_alone(const System& system, const GroupedCollective& grouped,
                             const CollectiveSchedule& schedule, int64_t element_bytes,
                             size_t most = kMaxJobs);

// Over the limit if the steps of one collective are too many for the devices of a System.
Status check_size(const Collective& collective, const CollectiveSchedule& schedule,
                  int64_t devices);
// Messages of a group, or the square of the members where all of them do the same.
inline constexpr int64_t kMostSharedMessages = int64_t{1} << 18;
inline constexpr int64_t kMostTurnedMessages = int64_t{1} << 27;

}  // namespace hone
