#include "timeline/system_jobs.h"

namespace hone {

SystemJobs::SystemJobs(const System& system) : topology_(system) {
  jobs_.queues = static_cast<uint32_t>(topology_.devices());
  jobs_.links.assign(topology_.links().begin(), topology_.links().end());
}

void SystemJobs::name(std::string_view name) { names_.emplace_back(name); }

uint32_t SystemJobs::add(Job job) {
  jobs_.jobs.push_back(std::move(job));
  name_of_.push_back(static_cast<uint32_t>(names_.size() - 1));
  return static_cast<uint32_t>(jobs_.jobs.size() - 1);
}

uint32_t SystemJobs::compute(int64_t device, double seconds, std::vector<uint32_t> after,
                             int32_t priority) {
  HONE_CHECK(device >= 0 && device < devices(), "device {} of {}", device, devices());
  return add({.queue = static_cast<uint32_t>(device),
              .priority = priority,
              .seconds = seconds,
              .after = std::move(after)});
}

uint32_t SystemJobs::send(int64_t from, int64_t to, double bytes, std::vector<uint32_t> after) {
  const Route& taken = route(from, to);
  return add({.seconds = taken.latency,
              .bytes = bytes,
              .route = taken.crossings,
              .after = std::move(after)});
}

uint32_t SystemJobs::join(std::vector<uint32_t> after) { return add({.after = std::move(after)}); }

const SystemJobs::Route& SystemJobs::route(int64_t from, int64_t to) {
  const auto [at, is_new] = routes_.try_emplace({from, to});
  if (!is_new) return at->second;
  for (const int64_t device : {from, to})
    HONE_CHECK(device >= 0 && device < devices(), "device {} of {}", device, devices());
  const std::vector<uint32_t> links = topology_.route(from, to);
  at->second.latency = topology_.latency(links);
  for (const uint32_t link : links) at->second.crossings.push_back({link});
  return at->second;
}

}  // namespace hone
