#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "target/topology.h"
#include "timeline/jobs.h"

// Jobs on the devices and the links of a System, with their names: a queue of each device, and each
// link one by one.

namespace hone {

class SystemJobs {
 public:
  // The system has passed check().
  explicit SystemJobs(const System& system);

  // The name of all jobs from now on, for people: "all_reduce %grad".
  void name(std::string_view name);

  // Each of these adds a job that waits for those of `after`, and gives its number.
  // Computing on a device, which the System has; so have the others.
  uint32_t compute(int64_t device, double seconds, std::vector<uint32_t> after,
                   int32_t priority = 0);
  // A message takes the way of Topology::route().
  uint32_t send(int64_t from, int64_t to, double bytes, std::vector<uint32_t> after);
  // Takes no time.
  uint32_t join(std::vector<uint32_t> after);
  // The job waits for this one, too.
  void wait(uint32_t job, uint32_t before) { jobs_.jobs[job].after.push_back(before); }

  int64_t devices() const { return topology_.devices(); }
  const Topology& topology() const { return topology_; }
  const Jobs& jobs() const { return jobs_; }
  const std::string& name_of(uint32_t job) const { return names_[name_of_[job]]; }

 private:
  struct Route {
    std::vector<Crossing> crossings;
    double latency = 0;
  };
  const Route& route(int64_t from, int64_t to);
  uint32_t add(Job job);

  const Topology topology_;
  Jobs jobs_;
  std::vector<std::string> names_ = {""};
  std::vector<uint32_t> name_of_;  // of each job
  std::map<std::pair<int64_t, int64_t>, Route> routes_;
};

}  // namespace hone
