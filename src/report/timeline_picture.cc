#include "report/timeline_picture.h"

#include <algorithm>

#include "report/system_explanation.h"

namespace hone {

TimelinePicture timeline_picture(const System& system, const SystemTimeline& timeline,
                                 const TimelineBounds& bounds) {
  return timeline_picture(system.name, timeline.timeline, timeline.jobs(), names_of(timeline),
                          bounds);
}

TimelinePicture timeline_picture(std::string_view system, const Timeline& timeline,
                                 const Jobs& jobs, const TimelineNames& names,
                                 const TimelineBounds& bounds) {
  std::vector<TimelinePicture::Track> tracks;
  for (uint32_t d = 0; d < jobs.queues; ++d) tracks.push_back({names.queues[d], false, {}});
  for (uint32_t link = 0; link < jobs.links.size(); ++link)
    tracks.push_back({names.links[link], true, {}});

  std::vector<uint32_t> order;  // the longest first
  for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
    if (timeline.end(job) > timeline.start(job)) order.push_back(job);
  const auto length = [&](uint32_t job) { return timeline.start(job) - timeline.end(job); };
  std::ranges::sort(order, {}, [&](uint32_t job) { return std::pair(length(job), job); });

  TimelinePicture picture;
  picture.system = system;
  picture.seconds = seconds_of(timeline.end());
  for (size_t i = 0; i < order.size(); ++i) {
    const Job& job = jobs.jobs[order[i]];
    if (i >= bounds.spans) {
      ++picture.left_out_spans;
      continue;
    }
    const TimelinePicture::Span span = {names.jobs[order[i]], seconds_of(timeline.start(order[i])),
                                        seconds_of(timeline.end(order[i]))};
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
