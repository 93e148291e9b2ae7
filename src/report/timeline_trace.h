#pragma once

#include <string>
#include <vector>

#include "report/trace.h"
#include "timeline/timeline.h"

namespace hone {

// The names of what a timeline numbers.
struct TimelineNames {
  std::vector<std::string> queues;  // "device 0"
  std::vector<std::string> links;   // Topology::link_name
  std::vector<std::string> jobs;
};

// Adds a track for each queue and each link that is used, with its jobs. A message is on the track
// of each link of its route from its start to its end. Messages that share a link are on tracks
// beside each other: "uplink 0 > 1", "uplink 0 > 1 (2)". Jobs that take no time are left out.
void add_timeline(Trace& trace, const Timeline& timeline, const Jobs& jobs,
                  const TimelineNames& names);

}  // namespace hone
