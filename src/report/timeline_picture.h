#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cost/system_timeline.h"
#include "report/timeline_trace.h"

namespace hone {

// The timeline of a system as a page draws it: a track for each device and each link that is used,
// as a trace has them (timeline_trace.h). Bounded, however many devices there are.
struct TimelinePicture {
  struct Span {
    std::string name;
    double begin = 0, end = 0;  // seconds
  };
  struct Track {
    std::string name;  // "device 0", "ring 3 > 4"
    bool is_link = false;
    std::vector<Span> spans;  // by their begins; those of a link may overlap
  };
  std::string system;
  double seconds = 0;
  std::vector<Track> tracks;  // devices, then links
  size_t left_out_tracks = 0, left_out_spans = 0;
};

struct TimelineBounds {
  size_t tracks = 40;
  size_t spans = 8'000;  // the longest
};

TimelinePicture timeline_picture(const System& system, const SystemTimeline& timeline,
                                 const TimelineBounds& bounds = {});
// The same of any timeline, with the names of its queues, links and jobs.
TimelinePicture timeline_picture(std::string_view system, const Timeline& timeline,
                                 const Jobs& jobs, const TimelineNames& names,
                                 const TimelineBounds& bounds = {});

}  // namespace hone
