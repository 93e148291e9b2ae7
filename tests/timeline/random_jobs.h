#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "target/presets.h"
#include "target/topology.h"
#include "tests/target/target_testing.h"
#include "timeline/timeline.h"

// Random jobs for timelines, and changes of them.

namespace hone::tested {

inline Job computing(uint32_t queue, double seconds, std::vector<uint32_t> after = {},
                     int32_t priority = 0) {
  return {.queue = queue, .priority = priority, .seconds = seconds, .after = std::move(after)};
}
inline Job message(double bytes, std::vector<Crossing> route, std::vector<uint32_t> after = {},
                   double latency = 0) {
  return {.seconds = latency, .bytes = bytes, .route = std::move(route), .after = std::move(after)};
}

// Numbers of a case: all of them real, or small and whole, so that much happens at once.
struct Draw {
  Rng& rng;
  bool is_round;

  double seconds() const {
    if (rng.chance(0.1)) return 0;
    return is_round ? 1e-6 * static_cast<double>(rng.between(1, 4)) : rng.uniform(0, 1e-3);
  }
  double bytes() const {
    if (rng.chance(0.1)) return 0;
    return is_round ? 1000 * static_cast<double>(rng.between(1, 4)) : rng.uniform(0, 1e6);
  }
  int32_t priority() const { return static_cast<int32_t>(rng.between(-2, 2)); }
};

// Links and routes of a System, or any.
struct Wires {
  std::vector<Link> links;
  std::vector<std::vector<Crossing>> routes;
};

inline Wires system_wires(Rng& rng) {
  static const Target target = parse_target(kSampleTarget, "t").value();
  constexpr std::string_view presets[] = {"local:3",   "ring:5",   "ring:8",     "mesh:3x3",
                                          "torus:2x4", "tree:2x3", "tree:2x2x2", "package:4"};
  System system = preset_system(rng.pick(presets), target).value();
  for (Links& links : system.links) {
    if (links.shape != Shape::bus) links.duplex = kDuplexes[rng.below(2)];
    links.shared = !rng.chance(0.1);
    links.bytes_per_second *= rng.uniform(0.01, 1);
  }
  const Topology topology(system);
  Wires wires;
  wires.links.assign(topology.links().begin(), topology.links().end());
  for (int64_t i = 0; i < 12; ++i) {
    std::vector<Crossing> route;
    for (uint32_t link : topology.route(rng.between(0, system.device_count() - 1),
                                        rng.between(0, system.device_count() - 1)))
      route.push_back({link});
    wires.routes.push_back(route);
  }
  return wires;
}

inline Wires any_wires(Rng& rng, const Draw& draw) {
  Wires wires;
  for (int64_t i = rng.between(1, 6); i > 0; --i)
    wires.links.push_back(
        {draw.is_round ? 1e9 * static_cast<double>(rng.between(1, 3)) : rng.uniform(1e8, 1e10), 0,
         !rng.chance(0.2)});
  for (int64_t i = 0; i < 12; ++i) {
    std::vector<Crossing> route;
    for (uint32_t link = 0; link < wires.links.size(); ++link)
      if (rng.chance(0.4))
        route.push_back({link, rng.chance(0.1) ? static_cast<uint32_t>(rng.between(1, 4)) : 1});
    rng.shuffle(route);
    wires.routes.push_back(route);
  }
  return wires;
}

inline Jobs random_jobs(Rng& rng, const Draw& draw) {
  const Wires wires = rng.chance(0.5) ? system_wires(rng) : any_wires(rng, draw);
  Jobs made;
  made.queues = static_cast<uint32_t>(rng.between(1, 5));
  made.links = wires.links;
  const size_t count = static_cast<size_t>(rng.between(0, 45));
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  rng.shuffle(order);
  made.jobs.resize(count);
  const double density = rng.uniform(0, 3);
  for (size_t i = 0; i < count; ++i) {
    Job job;
    if (rng.chance(0.5)) {
      job = computing(static_cast<uint32_t>(rng.below(made.queues)), draw.seconds(), {},
                      draw.priority());
    } else {
      job = message(draw.bytes(), rng.pick(wires.routes), {}, rng.chance(0.5) ? 0 : draw.seconds());
    }
    for (double left = density; i > 0 && rng.chance(left / 3); left -= 0.7)
      job.after.push_back(order[rng.below(i)]);
    made.jobs[order[i]] = std::move(job);
  }
  return made;
}

// One change of the jobs and of their timeline.
inline Status change(Rng& rng, const Draw& draw, Jobs& jobs, Timeline& timeline) {
  const uint32_t number = static_cast<uint32_t>(rng.below(jobs.jobs.size()));
  Job& job = jobs.jobs[number];
  const bool is_message = job.queue == Job::kNoQueue;
  switch (rng.below(4)) {
    case 0: job.seconds = draw.seconds(); return timeline.set_seconds(number, job.seconds);
    case 1:
      if (!is_message) return {};
      job.bytes = draw.bytes();
      return timeline.set_bytes(number, job.bytes);
    case 2: job.priority = draw.priority(); return timeline.set_priority(number, job.priority);
    default:
      if (is_message) return {};
      job.queue = static_cast<uint32_t>(rng.below(jobs.queues));
      return timeline.set_queue(number, job.queue);
  }
}

// Rounds of computing on each of some queues; all wait for all between rounds. Some queues have
// half of the others' work.
inline Jobs rounds_of_jobs(uint32_t queues, uint32_t rounds) {
  Jobs jobs = {queues, {{1e9}}, {}};
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t first = static_cast<uint32_t>(jobs.jobs.size());
    for (uint32_t queue = 0; queue < queues; ++queue)
      jobs.jobs.push_back(
          computing(queue, queue % 2 == 0 ? 2e-6 : 1e-6,
                    round == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>{first - 1}));
    std::vector<uint32_t> all;
    for (uint32_t queue = 0; queue < queues; ++queue) all.push_back(first + queue);
    jobs.jobs.push_back(message(1000, {{0}}, all, 1e-6));
  }
  return jobs;
}

}  // namespace hone::tested
