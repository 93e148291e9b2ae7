#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "timeline/timeline.h"

// The judge of timelines: the rules of timeline.h, followed tick by tick over all jobs, with shares
// of its own. It keeps nothing from one tick to the next but where each job stands.

namespace hone::tested {

struct SlowTimeline {
  std::vector<Ticks> start, end;
};

class SlowSimulator {
 public:
  explicit SlowSimulator(const Jobs& jobs) : jobs_(jobs), now_{}, at_(jobs.jobs.size()) {}

  SlowTimeline run() {
    for (;;) {
      round();
      Ticks next = std::numeric_limits<Ticks>::max();
      for (const Standing& job : at_)
        if (job.is(Phase::busy, Phase::moving, Phase::arriving)) next = std::min(next, job.until);
      if (next == std::numeric_limits<Ticks>::max()) break;
      now_ = next;
    }
    SlowTimeline found;
    for (const Standing& job : at_) {
      found.start.push_back(job.start);
      found.end.push_back(job.until);
    }
    return found;
  }

 private:
  enum class Phase { waiting, ready, busy, moving, arriving, done };
  struct Standing {
    Phase phase = Phase::waiting;
    Ticks start = -1, until = -1;
    double left = 0, rate = 0;
    Ticks since = 0;

    bool is(Phase a, Phase b, Phase c) const { return phase == a || phase == b || phase == c; }
  };

  void round() {
    std::vector<size_t> over;
    for (size_t i = 0; i < at_.size(); ++i)
      if (at_[i].is(Phase::busy, Phase::moving, Phase::arriving) && at_[i].until == now_)
        over.push_back(i);
    for (size_t i : over) {
      Standing& job = at_[i];
      if (job.phase == Phase::moving && ticks_of(jobs_.jobs[i].seconds) > 0)
        pass_seconds(i);
      else
        job.phase = Phase::done;
    }
    for (size_t i = 0; i < at_.size(); ++i)
      if (at_[i].phase == Phase::waiting && has_all(jobs_.jobs[i].after)) begin(i);
    for (uint32_t queue = 0; queue < jobs_.queues; ++queue) take(queue);
    share();
  }

  bool has_all(const std::vector<uint32_t>& before) const {
    return std::all_of(before.begin(), before.end(),
                       [&](uint32_t job) { return at_[job].phase == Phase::done; });
  }

  void pass_seconds(size_t i) {
    at_[i].phase = Phase::arriving;
    at_[i].until = now_ + ticks_of(jobs_.jobs[i].seconds);
  }

  void begin(size_t i) {
    const Job& job = jobs_.jobs[i];
    if (job.queue != Job::kNoQueue) {
      at_[i].phase = Phase::ready;
      return;
    }
    at_[i].start = now_;
    if (job.bytes == 0 || job.route.empty()) return pass_seconds(i);
    at_[i].phase = Phase::moving;
    at_[i].left = job.bytes;
    at_[i].since = now_;
  }

  void take(uint32_t queue) {
    size_t best = at_.size();
    for (size_t i = 0; i < at_.size(); ++i) {
      if (jobs_.jobs[i].queue != queue) continue;
      if (at_[i].phase == Phase::busy) return;
      if (at_[i].phase != Phase::ready) continue;
      if (best == at_.size() || jobs_.jobs[i].priority > jobs_.jobs[best].priority) best = i;
    }
    if (best == at_.size()) return;
    at_[best].phase = Phase::busy;
    at_[best].start = now_;
    at_[best].until = now_ + ticks_of(jobs_.jobs[best].seconds);
  }

  // Gives the flows of the tightest link, or the flow with the tightest link of its own, their
  // rate; then looks at what is left.
  void share() {
    std::vector<double> left, open(jobs_.links.size(), 0);
    for (const Link& link : jobs_.links) left.push_back(link.bytes_per_second);
    std::vector<size_t> flows;
    for (size_t i = 0; i < at_.size(); ++i)
      if (at_[i].phase == Phase::moving) {
        flows.push_back(i);
        for (const Crossing& crossing : jobs_.jobs[i].route) open[crossing.link] += crossing.flows;
      }
    while (!flows.empty()) {
      const auto tightest = [&](size_t i) {
        double least = std::numeric_limits<double>::infinity();
        for (const Crossing& crossing : jobs_.jobs[i].route) {
          const Link& link = jobs_.links[crossing.link];
          least = std::min(least, link.shared ? left[crossing.link] / open[crossing.link]
                                              : link.bytes_per_second);
        }
        return least;
      };
      const auto first = std::min_element(flows.begin(), flows.end(), [&](size_t a, size_t b) {
        return tightest(a) < tightest(b);
      });
      const size_t flow = *first;
      const double rate = tightest(flow);
      flows.erase(first);
      for (const Crossing& crossing : jobs_.jobs[flow].route) {
        left[crossing.link] -= rate * crossing.flows;
        open[crossing.link] -= crossing.flows;
      }
      set_rate(flow, rate);
    }
  }

  void set_rate(size_t i, double rate) {
    Standing& job = at_[i];
    // A rate that differs by rounding is the same: rounding depends on the order of filling.
    if (std::abs(rate - job.rate) <= 1e-12 * rate) return;
    job.left = std::max(0.0, job.left - job.rate * seconds_of(now_ - job.since));
    job.rate = rate;
    job.since = now_;
    job.until = now_ + ticks_of(job.left / rate);
  }

  const Jobs& jobs_;
  Ticks now_;
  std::vector<Standing> at_;
};

inline SlowTimeline slow_timeline(const Jobs& jobs) { return SlowSimulator(jobs).run(); }

}  // namespace hone::tested
