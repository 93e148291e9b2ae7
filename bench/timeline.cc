// Timelines: events per second, and what a local change of 10,000 jobs takes. Each change gives a
// random job other seconds or bytes. In `layers` every layer ends with an all-reduce that the next
// one waits for; in `gradients` all-reduces overlap with computing, and only the end waits for all.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/rng.h"
#include "target/presets.h"
#include "target/topology.h"
#include "timeline/timeline.h"

namespace hone::HONE_FILE {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kDevices = 8;
constexpr size_t kJobs = 10'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Devices on a ring, and the program of each, which grows layer by layer.
class Programs {
 public:
  explicit Programs(uint32_t devices)
      : devices_(devices),
        topology_(preset_system(fmt::format("ring:{}", devices), host_target().value()).value()) {
    jobs_.queues = devices;
    jobs_.links.assign(topology_.links().begin(), topology_.links().end());
  }

  // A job on each device, after its job of `after` if there are such.
  uint32_t compute(double seconds, uint32_t after, uint32_t also) {
    const uint32_t first = static_cast<uint32_t>(jobs_.jobs.size());
    for (uint32_t device = 0; device < devices_; ++device) {
      Job job = {.queue = device, .seconds = seconds * rng_.uniform(0.8, 1.2)};
      for (uint32_t before : {after, also})
        if (before != kNone) job.after.push_back(before + device);
      jobs_.jobs.push_back(job);
    }
    return first;
  }

  // A ring all-reduce: messages to each device. Each sender adds what it has got before to its own.
  uint32_t all_reduce(double bytes, uint32_t after) {
    const uint32_t own = after;
    for (uint32_t step = 0; step < 2 * (devices_ - 1); ++step) {
      const uint32_t first = static_cast<uint32_t>(jobs_.jobs.size());
      for (uint32_t device = 0; device < devices_; ++device) {
        const uint32_t sender = (device + devices_ - 1) % devices_;
        const std::vector<uint32_t> route = topology_.route(sender, device);
        Job job = {.seconds = topology_.latency(route), .bytes = bytes / devices_};
        for (uint32_t link : route) job.route.push_back({link});
        job.after = {own + sender};
        if (step > 0) job.after.push_back(after + sender);
        jobs_.jobs.push_back(job);
      }
      after = first;
    }
    return after;
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  Jobs jobs_;

 private:
  uint32_t devices_;
  Topology topology_;
  Rng rng_ = Rng(1);
};

Jobs layers(uint32_t devices, size_t jobs) {
  Programs programs(devices);
  uint32_t before = Programs::kNone;
  while (programs.jobs_.jobs.size() < jobs)
    before = programs.all_reduce(4e6, programs.compute(1e-3, before, Programs::kNone));
  return programs.jobs_;
}

Jobs gradients(uint32_t devices, size_t jobs) {
  Programs programs(devices);
  uint32_t before = Programs::kNone, reduced = Programs::kNone;
  while (programs.jobs_.jobs.size() < jobs) {
    before = programs.compute(1e-3, before, Programs::kNone);
    reduced = programs.all_reduce(4e6, before);
  }
  programs.compute(1e-3, before, reduced);
  return programs.jobs_;
}

void simulate(benchmark::State& state, const Jobs& jobs) {
  int64_t events = 0;
  double seconds = 0;
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    const Timeline timeline = Timeline::open(jobs).value();
    seconds += seconds_since(start);
    events += timeline.events();
  }
  state.counters["jobs"] = static_cast<double>(jobs.jobs.size());
  state.counters["Mevents/s"] = 1e-6 * static_cast<double>(events) / seconds;
}

// Jobs whose times are others than before, and not all by as much.
int64_t changed_jobs(const Timeline& timeline, std::vector<Ticks>& ends) {
  std::map<Ticks, int64_t> by;
  for (uint32_t job = 0; job < timeline.size(); ++job) {
    const Ticks end = timeline.end(job);
    ++by[end - std::exchange(ends[job], end)];
  }
  const int64_t same = by.contains(0) ? std::exchange(by[0], 0) : 0;
  int64_t moved = 0;
  for (const auto& [ticks, count] : by) moved = std::max(moved, count);
  return static_cast<int64_t>(timeline.size()) - same - moved;
}

void change(benchmark::State& state, const Jobs& jobs) {
  Timeline timeline = Timeline::open(jobs).value();
  Rng rng(2);
  std::vector<double> times, events, changed;
  std::vector<Ticks> ends(timeline.size());
  changed_jobs(timeline, ends);
  for (auto _ : state) {
    const uint32_t job = static_cast<uint32_t>(rng.below(jobs.jobs.size()));
    const double factor = rng.uniform(0.5, 2);
    const bool computes = jobs.jobs[job].queue != Job::kNoQueue;
    const int64_t before = timeline.events();
    const Clock::time_point start = Clock::now();
    const Status set = computes ? timeline.set_seconds(job, jobs.jobs[job].seconds * factor)
                                : timeline.set_bytes(job, jobs.jobs[job].bytes * factor);
    timeline.update();
    times.push_back(seconds_since(start));
    events.push_back(static_cast<double>(timeline.events() - before));
    changed.push_back(static_cast<double>(changed_jobs(timeline, ends)));
    if (!set.ok()) state.SkipWithError(set.error().to_string().c_str());
  }
  std::sort(times.begin(), times.end());
  std::sort(events.begin(), events.end());
  std::sort(changed.begin(), changed.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["worst_us"] = 1e6 * times.back();
  state.counters["median_events"] = events[events.size() / 2];
  state.counters["worst_events"] = events.back();
  state.counters["median_changed"] = changed[changed.size() / 2];
}

const auto kRegistered = [] {
  for (const auto& [name, make] : {std::pair("layers", &layers), {"gradients", &gradients}}) {
    const Jobs jobs = make(kDevices, kJobs);
    benchmark::RegisterBenchmark(fmt::format("simulate/{}", name).c_str(),
                                 [jobs](benchmark::State& state) { simulate(state, jobs); })
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(fmt::format("change/{}", name).c_str(),
                                 [jobs](benchmark::State& state) { change(state, jobs); })
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(2000);
  }
  return true;
}();

}  // namespace
}  // namespace hone::HONE_FILE
