#include "place/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "place/bounds.h"
#include "place/task_text.h"
#include "tests/base/says_testing.h"
#include "tests/place/random_problem.h"
#include "tests/timeline/slow_timeline.h"

// The value of placements, against simulators of its own.

namespace hone::HONE_FILE {
namespace {

using tested::random_place_problem;
using tested::random_placement;
using tested::refuses;
using tested::slow_timeline;
using testing::DoubleNear;
using testing::ElementsAre;

// A simulator that knows no jobs: nodes on devices, and tensors that arrive after a time that
// depends on nobody else. At each moment it looks at all.
class PlainSimulator {
 public:
  PlainSimulator(const PlaceProblem& problem, const DevicePlacement& placement)
      : problem_(problem),
        placement_(placement),
        devices_(place_devices(problem)),
        start_(problem.nodes.size(), -1),
        end_(problem.nodes.size(), -1) {}

  double run() {
    double now = 0;
    for (size_t started = 0; started < problem_.nodes.size();) {
      for (uint32_t d = 0; d < devices_.size(); ++d) started += start_ready(d, now);
      if (started == problem_.nodes.size()) break;
      now = next_moment(now);
    }
    // A message that comes last counts, too.
    double last = 0;
    for (const double end : end_) last = std::max(last, end);
    return last;
  }

 private:
  static constexpr double kNever = 1e300;

  double arrival(const PlaceTensor& tensor, uint32_t device) const {
    if (end_[tensor.maker] < 0) return kNever;
    if (placement_.device[tensor.maker] == device) return end_[tensor.maker];
    const Links& links = problem_.system.links[0];
    return end_[tensor.maker] + tensor.bytes / links.bytes_per_second + links.latency;
  }
  double ready_at(uint32_t node) const {
    double at = 0;
    for (const PlaceTensor& tensor : problem_.tensors)
      if (std::ranges::find(tensor.users, node) != tensor.users.end())
        at = std::max(at, arrival(tensor, placement_.device[node]));
    return at;
  }
  bool is_busy(uint32_t device, double now) const {
    for (uint32_t i = 0; i < start_.size(); ++i)
      if (placement_.device[i] == device && start_[i] >= 0 && end_[i] > now + kSame) return true;
    return false;
  }
  size_t start_ready(uint32_t device, double now) {
    size_t started = 0;
    while (!is_busy(device, now)) {
      int64_t best = -1;
      for (uint32_t i = 0; i < start_.size(); ++i)
        if (placement_.device[i] == device && start_[i] < 0 && ready_at(i) <= now + kSame &&
            (best < 0 || placement_.priority[i] > placement_.priority[static_cast<size_t>(best)]))
          best = i;
      if (best < 0) break;
      const auto node = static_cast<size_t>(best);
      start_[node] = now;
      end_[node] = now + problem_.nodes[node].seconds[devices_[device].target];
      ++started;
    }
    return started;
  }
  double next_moment(double now) const {
    double next = kNever;
    for (uint32_t i = 0; i < start_.size(); ++i) {
      const double at = start_[i] < 0 ? ready_at(i) : end_[i];
      if (at > now + kSame) next = std::min(next, at);
    }
    return next;
  }
  static constexpr double kSame = 1e-12;  // moments that rounding tells apart

  const PlaceProblem& problem_;
  const DevicePlacement& placement_;
  std::vector<PlaceDevice> devices_;
  std::vector<double> start_, end_;
};

// Nodes and messages that take no time are left out: within a moment the rules differ in their
// order.
TEST(PlaceJudge, StepsAreThoseOfAPlainSimulatorWhereNobodySharesALink) {
  int judged = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    PlaceProblem problem = random_place_problem({.nodes = static_cast<uint32_t>(rng.between(1, 14)),
                                                 .devices = rng.between(1, 4),
                                                 .private_links = true,
                                                 .memory = false},
                                                rng);
    for (PlaceNode& node : problem.nodes)
      for (double& seconds : node.seconds)
        if (seconds == 0) seconds = 0.5e-3;
    for (PlaceTensor& tensor : problem.tensors) tensor.bytes = std::max(tensor.bytes, 1.0);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const DevicePlacement placement = random_placement(PlaceUnits(judge), rng);
    ASSERT_TRUE(check(problem, placement).ok());
    const PlaceTimeline timeline = judge.timeline(placement).value();
    double last = 0;  // of nodes: nobody waits for a message alone, since it has a user
    for (uint32_t i = 0; i < problem.nodes.size(); ++i)
      last = std::max(last, seconds_of(timeline.timeline.end(i)));
    EXPECT_NEAR(last, PlainSimulator(problem, placement).run(), 1e-10) << seed;
    EXPECT_EQ(last, timeline.seconds());
    ++judged;
  }
  EXPECT_GT(judged, 300);
}

TEST(PlaceJudge, StepsAreThoseOfTheSlowTimelineWhereLinksAreShared) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem =
        random_place_problem({.devices = rng.between(2, 4), .memory = rng.chance(0.5)}, rng);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const DevicePlacement placement = random_placement(PlaceUnits(judge), rng);
    const PlaceTimeline timeline = judge.timeline(placement).value();
    const tested::SlowTimeline slow = slow_timeline(timeline.jobs.jobs());
    for (uint32_t i = 0; i < timeline.timeline.size(); ++i)
      EXPECT_EQ(timeline.timeline.end(i), slow.end[i]) << seed;
    EXPECT_EQ(judge.value(placement, PlaceGoal::step),
              judge.check_memory(placement, timeline).ok() ? timeline.seconds() : kCannotRun);
  }
}

// ---- Loads and memory --------------------------------------------------------------------------

TEST(PlaceJudge, ATensorCountsOnceForADeviceWhoeverUsesIt) {
  PlaceProblem problem;
  problem.name = "fan";
  problem.system = task_system(3).value();
  for (int64_t i = 0; i < 5; ++i) problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}});
  problem.tensors = {{0, {1, 2, 3, 4}, 1e10, 0}};  // a millisecond
  const PlaceJudge judge(problem);
  // Out once; in once on each of two devices.
  EXPECT_THAT(
      judge.loads({{0, 1, 1, 2, 0}, {}}),
      ElementsAre(DoubleNear(3e-3, 1e-12), DoubleNear(3e-3, 1e-12), DoubleNear(2e-3, 1e-12)));
  EXPECT_THAT(judge.loads({{0, 0, 0, 0, 0}, {}}), ElementsAre(DoubleNear(5e-3, 1e-12), 0, 0));
}

// Their definition: over every pair of a tensor and a device.
std::vector<double> plain_loads(const PlaceProblem& problem, const DevicePlacement& placement) {
  const std::vector<PlaceDevice> devices = place_devices(problem);
  std::vector<double> loads(devices.size());
  for (uint32_t d = 0; d < devices.size(); ++d) {
    for (uint32_t i = 0; i < problem.nodes.size(); ++i)
      if (placement.device[i] == d) loads[d] += problem.nodes[i].seconds[devices[d].target];
    for (const PlaceTensor& tensor : problem.tensors) {
      std::set<uint32_t> places;
      for (const uint32_t user : tensor.users) places.insert(placement.device[user]);
      const bool own = placement.device[tensor.maker] == d;
      places.erase(placement.device[tensor.maker]);
      if (own ? !places.empty() : places.contains(d)) loads[d] += tensor.bytes * devices[d].port;
    }
  }
  return loads;
}

TEST(PlaceJudge, LoadsAreThoseOfTheirDefinition) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = random_place_problem({.devices = rng.between(1, 4)}, rng);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const DevicePlacement placement = random_placement(PlaceUnits(judge), rng);
    const std::vector<double> loads = judge.loads(placement),
                              plain = plain_loads(problem, placement);
    for (size_t d = 0; d < loads.size(); ++d) EXPECT_NEAR(loads[d], plain[d], 1e-12) << seed;
  }
}

// The bytes of a device while a job runs, from the times alone.
int64_t plain_peak(const PlaceProblem& problem, const DevicePlacement& placement,
                   const PlaceTimeline& timeline, uint32_t device) {
  std::vector<Ticks> moments;
  for (uint32_t i = 0; i < timeline.timeline.size(); ++i)
    moments.push_back(timeline.timeline.start(i));
  moments.push_back(0);
  int64_t peak = 0;
  for (const Ticks at : moments) {
    int64_t bytes = 0;
    const auto lives = [&](Ticks from, Ticks to) { return from <= at && (at < to || from == to); };
    for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
      if (placement.device[i] != device) continue;
      bytes += problem.nodes[i].held;
      if (lives(timeline.timeline.start(i), timeline.timeline.end(i)))
        bytes += problem.nodes[i].scratch;
    }
    auto message = static_cast<uint32_t>(problem.nodes.size());
    for (const PlaceTensor& tensor : problem.tensors) {
      const uint32_t own = placement.device[tensor.maker];
      Ticks last_here = timeline.timeline.end(tensor.maker);
      std::map<uint32_t, Ticks> last_of;
      for (const uint32_t user : tensor.users) {
        Ticks& last = last_of[placement.device[user]];
        last = std::max(last, timeline.timeline.end(user));
      }
      if (last_of.contains(own)) last_here = std::max(last_here, last_of[own]);
      last_of.erase(own);
      for (const auto& [to, last] : last_of) {
        last_here = std::max(last_here, timeline.timeline.end(message));
        if (to == device && lives(timeline.timeline.start(message), last)) bytes += tensor.held;
        ++message;
      }
      if (own == device && lives(timeline.timeline.start(tensor.maker), last_here))
        bytes += tensor.held;
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

TEST(PlaceJudge, MemoryIsThatOfTheTimes) {
  int unfit = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    PlaceProblem problem = random_place_problem({.devices = rng.between(1, 3)}, rng);
    // Where all take a while, a moment has one order.
    for (PlaceNode& node : problem.nodes)
      for (double& seconds : node.seconds)
        if (seconds == 0) seconds = 1e-3;
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const DevicePlacement placement = random_placement(PlaceUnits(judge), rng);
    const PlaceTimeline timeline = judge.timeline(placement).value();
    bool fits = true;
    for (uint32_t d = 0; d < problem.devices(); ++d) {
      const int64_t peak = plain_peak(problem, placement, timeline, d);
      EXPECT_EQ(timeline.memory[d].peak, peak) << seed << " " << d;
      fits &= peak <= judge.devices()[d].memory;
    }
    EXPECT_EQ(judge.check_memory(placement, timeline).ok(), fits);
    unfit += fits ? 0 : 1;
  }
  EXPECT_GT(unfit, 3);
}

TEST(PlaceJudge, TooMuchMemoryIsNamed) {
  PlaceProblem problem;
  problem.name = "two";
  problem.system = task_system(1).value();
  problem.system.devices[0].memory_bytes = 1000;
  problem.nodes = {{.id = 3, .name = "big", .seconds = {1}, .held = 700},
                   {.id = 4, .name = "small", .seconds = {1}, .held = 200}};
  problem.tensors = {{0, {1}, 0, 300}};
  ASSERT_TRUE(check(problem).ok());
  const PlaceJudge judge(problem);
  const DevicePlacement placement = {{0, 0}, {}};
  EXPECT_THAT(judge.check_memory(placement, judge.timeline(placement).value()),
              refuses(ErrorCode::limit, "device 0 ... 1200 B ... 200 B more ... node 3 'big'"));
  EXPECT_EQ(judge.value(placement, PlaceGoal::step), kCannotRun);
  EXPECT_EQ(judge.value(placement, PlaceGoal::load), kCannotRun);
}

// ---- Bounds ------------------------------------------------------------------------------------

TEST(PlaceBounds, NoPlacementIsBelow) {
  int close = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = random_place_problem({.nodes = 6,
                                                       .devices = rng.between(1, 3),
                                                       .private_links = rng.chance(0.5),
                                                       .memory = rng.chance(0.5)},
                                                      rng);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const PlaceUnits units(judge);
    const PlaceBounds bounds = place_bounds(judge);
    double step = kCannotRun, load = kCannotRun;
    std::vector<size_t> choice(units.units().size());
    for (bool more = true; more;) {
      std::vector<uint32_t> devices;
      for (size_t u = 0; u < choice.size(); ++u)
        devices.push_back(units.units()[u].devices[choice[u]]);
      const DevicePlacement placement = units.placement(devices);
      step = std::min(step, judge.value(placement, PlaceGoal::step));
      load = std::min(load, judge.value(placement, PlaceGoal::load));
      more = false;
      for (size_t u = 0; u < choice.size() && !more; ++u) {
        more = ++choice[u] < units.units()[u].devices.size();
        if (!more) choice[u] = 0;
      }
    }
    EXPECT_LE(bounds.of(PlaceGoal::step), step * (1 + 1e-9)) << seed;
    EXPECT_LE(bounds.of(PlaceGoal::load), load * (1 + 1e-9)) << seed;
    close += bounds.of(PlaceGoal::step) >= 0.99 * step ? 1 : 0;
  }
  EXPECT_GT(close, 20);  // bounds are not just zero
}

TEST(PlaceBounds, WhatCrossesForSureCounts) {
  PlaceProblem problem;
  problem.name = "two";
  problem.system = task_system(2).value();
  problem.system.devices[0].memory_bytes = 1000;
  problem.nodes = {{.id = 0, .name = "", .seconds = {1e-3}, .held = 600},
                   {.id = 1, .name = "", .seconds = {2e-3}, .held = 600}};
  problem.tensors = {{0, {1}, 5e10, 0}};  // 5 ms
  const PlaceBounds bounds = place_bounds(PlaceJudge(problem));
  EXPECT_NEAR(bounds.path, 3e-3, 1e-12);
  EXPECT_NEAR(bounds.work, 1.5e-3, 1e-6);
  EXPECT_NEAR(bounds.memory, 8e-3, 1e-12);
  EXPECT_EQ(bounds.links, 0);
  EXPECT_EQ(bounds.name_of(PlaceGoal::step), "memory");
  problem.nodes[0].held = problem.nodes[1].held = 0;
  problem.nodes[0].pinned = 1;
  problem.nodes[1].pinned = 0;
  EXPECT_NEAR(place_bounds(PlaceJudge(problem)).links, 8e-3, 1e-12);
}

}  // namespace
}  // namespace hone::HONE_FILE
