#include "report/timeline_picture.h"

#include <algorithm>

namespace hone {

TimelinePicture timeline_picture(const System& system, const SystemTimeline& timeline,
                                 const TimelineBounds& bounds) {
  const Jobs& jobs = timeline.jobs();
  std::vector<TimelinePicture::Track> tracks;
  for (uint32_t d = 0; d < jobs.queues; ++d)
    tracks.push_back({"device " + timeline.devices_name(d), false, {}});
  for (uint32_t link = 0; link < jobs.links.size(); ++link)
    tracks.push_back({timeline.link_name(link), true, {}});

  std::vector<uint32_t> order;  // the longest first
  for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
    if (timeline.timeline.end(job) > timeline.timeline.start(job)) order.push_back(job);
  const auto length = [&](uint32_t job) {
    return timeline.timeline.start(job) - timeline.timeline.end(job);
  };
  std::ranges::sort(order, {}, [&](uint32_t job) { return std::pair(length(job), job); });

  TimelinePicture picture;
  picture.system = system.name;
  picture.seconds = seconds_of(timeline.timeline.end());
  for (size_t i = 0; i < order.size(); ++i) {
    const Job& job = jobs.jobs[order[i]];
    if (i >= bounds.spans) {
      ++picture.left_out_spans;
      continue;
    }
    const TimelinePicture::Span span = {timeline.name_of(order[i]),
                                        seconds_of(timeline.timeline.start(order[i])),
                                        seconds_of(timeline.timeline.end(order[i]))};
    if (job.queue != Job::kNoQueue) tracks[job.queue].spans.push_back(span);
    for (const Crossing& crossing : job.route)
      tracks[jobs.queues + crossing.link].spans.push_back(span);
  }
  for (TimelinePicture::Track& track : tracks) {
    if (track.is_link && track.spans.empty()) continue;
    if (picture.tracks.size() == bounds.tracks) {
      ++picture.left_out_tracks;
      continue;
    }
    std::ranges::sort(track.spans, {}, [](const TimelinePicture::Span& span) {
      return std::pair(span.begin, span.end);
    });
    picture.tracks.push_back(std::move(track));
  }
  return picture;
}

}  // namespace hone
