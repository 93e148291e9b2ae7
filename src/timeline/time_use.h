#pragma once

#include <cstdint>
#include <vector>

#include "timeline/jobs.h"
#include "timeline/timeline.h"

// The use of the time of a timeline: the chain of jobs that decides about its end, what queues wait
// for, and how busy links are. The jobs are those of the timeline.

namespace hone {

// Jobs from tick 0 to the end of all. Each one starts when the one before it ends, because it waits
// for that one, or for the queue that it has. If there are several chains, it is the one over the
// least numbers, from the end on. Jobs that take no time are left out.
std::vector<uint32_t> longest_chain(const Timeline& timeline, const Jobs& jobs);

struct QueueWait {
  Ticks begin = 0;
  Ticks end = 0;
  uint32_t job = 0;    // that comes then
  uint32_t cause = 0;  // the last one that it waited for, over those that take no time
};
struct QueueTime {
  Ticks computing = 0;
  Ticks end = 0;                      // of its last job
  std::vector<QueueWait> waits = {};  // before it and between its jobs, by time
};
std::vector<QueueTime> queue_times(const Timeline& timeline, const Jobs& jobs);

struct LinkTime {
  Ticks busy = 0;    // while at least one message moves over it
  double bytes = 0;  // of all messages
};
std::vector<LinkTime> link_times(const Timeline& timeline, const Jobs& jobs);

}  // namespace hone
