#include "report/timeline_trace.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

int64_t nanoseconds(Ticks ticks) { return static_cast<int64_t>(seconds_of(ticks) * 1e9 + 0.5); }

// The tracks of a queue or of a link; no two spans of a track overlap.
class Tracks {
 public:
  Tracks(Trace& trace, std::string name) : trace_(trace), name_(std::move(name)) {}

  // Spans come by their begins.
  int32_t free_at(Ticks begin, Ticks end) {
    for (auto& [track, until] : tracks_)
      if (until <= begin) {
        until = end;
        return track;
      }
    const std::string name =
        tracks_.empty() ? name_ : fmt::format("{} ({})", name_, tracks_.size() + 1);
    tracks_.emplace_back(trace_.add_track(name), end);
    return tracks_.back().first;
  }

 private:
  Trace& trace_;
  std::string name_;
  std::vector<std::pair<int32_t, Ticks>> tracks_;
};

Trace::Label label_of(const Job& job, const std::string& name) {
  if (job.queue != Job::kNoQueue) return {"computing", name};
  return {"message", name, {{"bytes", format_double(job.bytes)}}};
}

}  // namespace

void add_timeline(Trace& trace, const Timeline& timeline, const Jobs& jobs,
                  const TimelineNames& names) {
  HONE_CHECK(timeline.size() == jobs.jobs.size() && names.jobs.size() == jobs.jobs.size() &&
                 names.queues.size() == jobs.queues && names.links.size() == jobs.links.size(),
             "names of {} jobs, {} queues, {} links", names.jobs.size(), names.queues.size(),
             names.links.size());
  std::vector<Tracks> queues, links;
  for (const std::string& name : names.queues) queues.emplace_back(trace, name);
  for (const std::string& name : names.links) links.emplace_back(trace, name);
  std::vector<uint32_t> order;
  for (uint32_t job = 0; job < timeline.size(); ++job)
    if (timeline.end(job) > timeline.start(job)) order.push_back(job);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(timeline.start(a), a) < std::pair(timeline.start(b), b);
  });
  for (uint32_t number : order) {
    const Job& job = jobs.jobs[number];
    const Ticks begin = timeline.start(number), end = timeline.end(number);
    const auto add_on = [&](Tracks& tracks) {
      trace.add(label_of(job, names.jobs[number]),
                {nanoseconds(begin), nanoseconds(end), tracks.free_at(begin, end)});
    };
    if (job.queue != Job::kNoQueue) add_on(queues[job.queue]);
    for (const Crossing& crossing : job.route) add_on(links[crossing.link]);
  }
}

}  // namespace hone
