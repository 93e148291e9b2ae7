#include "timeline/time_use.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hone {
namespace {

bool takes_time(const Timeline& timeline, uint32_t job) {
  return timeline.end(job) > timeline.start(job);
}

// Why a job starts when it does.
class Causes {
 public:
  Causes(const Timeline& timeline, const Jobs& jobs) : timeline_(timeline), jobs_(jobs) {
    for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
      if (jobs.jobs[job].queue != Job::kNoQueue && takes_time(timeline, job))
        ends_on_queue_[{jobs.jobs[job].queue, timeline.end(job)}] = job;
  }

  // A job that ends when this one starts, which is not at tick 0.
  uint32_t of(uint32_t job) const {
    const Ticks start = timeline_.start(job);
    uint32_t least = UINT32_MAX;
    for (const uint32_t before : jobs_.jobs[job].after)
      if (timeline_.end(before) == start) least = std::min(least, before);
    // Else it was ready before, and its queue was not free.
    return least != UINT32_MAX ? least : ends_on_queue_.at({jobs_.jobs[job].queue, start});
  }

 private:
  const Timeline& timeline_;
  const Jobs& jobs_;
  std::map<std::pair<uint32_t, Ticks>, uint32_t> ends_on_queue_;  // jobs that take time
};

// Jobs that take time, queue by queue, in their order.
std::vector<std::vector<uint32_t>> orders_of(const Timeline& timeline, const Jobs& jobs) {
  std::vector<std::vector<uint32_t>> orders(jobs.queues);
  for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
    if (jobs.jobs[job].queue != Job::kNoQueue && takes_time(timeline, job))
      orders[jobs.jobs[job].queue].push_back(job);
  for (std::vector<uint32_t>& order : orders)
    std::ranges::sort(order, {}, [&](uint32_t job) { return timeline.start(job); });
  return orders;
}

}  // namespace

std::vector<uint32_t> longest_chain(const Timeline& timeline, const Jobs& jobs) {
  std::vector<uint32_t> chain;
  if (timeline.end() == 0) return chain;
  const Causes causes(timeline, jobs);
  uint32_t at = 0;
  while (timeline.end(at) != timeline.end()) ++at;
  while (true) {
    if (takes_time(timeline, at)) chain.push_back(at);
    if (timeline.start(at) == 0) break;
    at = causes.of(at);
  }
  std::ranges::reverse(chain);
  return chain;
}

std::vector<QueueTime> queue_times(const Timeline& timeline, const Jobs& jobs) {
  const Causes causes(timeline, jobs);
  std::vector<QueueTime> times;
  for (const std::vector<uint32_t>& order : orders_of(timeline, jobs)) {
    QueueTime& time = times.emplace_back();
    for (const uint32_t job : order) {
      if (timeline.start(job) > time.end) {
        uint32_t cause = causes.of(job);
        while (!takes_time(timeline, cause)) cause = causes.of(cause);
        time.waits.push_back({time.end, timeline.start(job), job, cause});
      }
      time.computing += timeline.end(job) - timeline.start(job);
      time.end = timeline.end(job);
    }
  }
  return times;
}

std::vector<LinkTime> link_times(const Timeline& timeline, const Jobs& jobs) {
  std::vector<LinkTime> times(jobs.links.size());
  std::vector<Ticks> until(jobs.links.size(), 0);
  std::vector<uint32_t> order;
  for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
    if (!jobs.jobs[job].route.empty()) order.push_back(job);
  std::ranges::sort(order, {}, [&](uint32_t job) { return std::pair(timeline.start(job), job); });
  for (const uint32_t number : order) {
    const Job& job = jobs.jobs[number];
    const Ticks start = timeline.start(number);
    const Ticks end = timeline.end(number) - ticks_of(job.seconds);
    for (const Crossing& crossing : job.route) {
      LinkTime& time = times[crossing.link];
      Ticks& busy_until = until[crossing.link];
      time.busy += std::max<Ticks>(0, end - std::max(start, busy_until));
      busy_until = std::max(busy_until, end);
      time.bytes += job.bytes * crossing.flows;
    }
  }
  return times;
}

}  // namespace hone
