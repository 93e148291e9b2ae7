#include "timeline/jobs.h"

#include <algorithm>
#include <limits>

namespace hone {
namespace {

Status check_job(const Jobs& all, size_t number) {
  const Job& job = all.jobs[number];
  if (job.seconds > kMaxTimeline) return too_long(fmt::format("job {} takes", number), job.seconds);
  if (!(job.seconds >= 0))
    return bad_input("job {} takes {} s; it must be 0 to {}", number, job.seconds, kMaxTimeline);
  if (!(job.bytes >= 0 && job.bytes <= kMaxMessage))
    return bad_input("job {} moves {} bytes; it must be 0 to {}", number, job.bytes, kMaxMessage);
  if (job.queue != Job::kNoQueue) {
    if (job.queue >= all.queues)
      return bad_input("job {} is on queue {} of {}", number, job.queue, all.queues);
    if (job.bytes != 0 || !job.route.empty())
      return bad_input("job {} is on a queue and moves bytes, too", number)
          .with_hint("make two jobs of it");
  }
  for (const Crossing& crossing : job.route)
    if (crossing.link >= all.links.size() || crossing.flows == 0)
      return bad_input("job {} crosses link {} of {}, {} times", number, crossing.link,
                       all.links.size(), crossing.flows);
  for (uint32_t before : job.after)
    if (before >= all.jobs.size())
      return bad_input("job {} waits for job {} of {}", number, before, all.jobs.size());
  return {};
}

// Jobs that can be put in order are; a job that is left waits for itself, or for one that does.
Status check_order(const Jobs& all) {
  const size_t count = all.jobs.size();
  std::vector<uint32_t> waits(count), first(count + 1);
  for (size_t job = 0; job < count; ++job) {
    waits[job] = static_cast<uint32_t>(all.jobs[job].after.size());
    for (uint32_t before : all.jobs[job].after) ++first[before + 1];
  }
  for (size_t job = 0; job < count; ++job) first[job + 1] += first[job];
  std::vector<uint32_t> next(first[count]), fill(first.begin(), first.end() - 1), open;
  for (uint32_t job = 0; job < count; ++job)
    for (uint32_t before : all.jobs[job].after) next[fill[before]++] = job;
  for (uint32_t job = 0; job < count; ++job)
    if (waits[job] == 0) open.push_back(job);
  size_t ordered = 0;
  for (; ordered < open.size(); ++ordered)
    for (uint32_t i = first[open[ordered]]; i < first[open[ordered] + 1]; ++i)
      if (--waits[next[i]] == 0) open.push_back(next[i]);
  if (ordered == count) return {};
  // Back from a job that is left, over those that it waits for, until one comes twice.
  const auto is_left = [&](uint32_t job) { return waits[job] != 0; };
  uint32_t at = 0;
  while (!is_left(at)) ++at;
  std::vector<bool> seen(count);
  while (!seen[at]) {
    seen[at] = true;
    at = *std::find_if(all.jobs[at].after.begin(), all.jobs[at].after.end(), is_left);
  }
  const uint32_t before =
      *std::find_if(all.jobs[at].after.begin(), all.jobs[at].after.end(), is_left);
  return bad_input("job {} waits for job {}, which waits for job {}", at, before, at);
}

}  // namespace

Error too_long(std::string_view what, double seconds) {
  return over_limit("{} {} s, more than {}", what, seconds, kMaxTimeline)
      .with_hint("take faster devices, by --target or --system, or less work");
}

double most_seconds(const Job& job, std::span<const Link> links) {
  double rate = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : job.route) {
    const Link& link = links[crossing.link];
    rate = std::min(rate, link.bytes_per_second / (link.shared ? crossing.flows : 1));
  }
  return job.seconds + (job.bytes > 0 ? job.bytes / rate : 0);
}

Status check(const Jobs& all) {
  if (all.jobs.size() > kMaxJobs)
    return over_limit("{} jobs are more than {}", all.jobs.size(), kMaxJobs);
  for (size_t link = 0; link < all.links.size(); ++link)
    if (!(all.links[link].bytes_per_second >= kMinBandwidth &&
          all.links[link].bytes_per_second <= kMaxBandwidth))
      return bad_input("the bandwidth of link {} is {} B/s; it must be {} to {}", link,
                       all.links[link].bytes_per_second, kMinBandwidth, kMaxBandwidth);
  double seconds = 0;
  for (size_t job = 0; job < all.jobs.size(); ++job) {
    HONE_TRY(check_job(all, job));
    seconds += most_seconds(all.jobs[job], all.links);
  }
  if (!(seconds < kMaxTimeline)) return too_long("one after another the jobs take", seconds);
  return check_order(all);
}

}  // namespace hone
