#include "timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/rng.h"
#include "target/presets.h"
#include "target/topology.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"
#include "tests/timeline/slow_timeline.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;
using tested::slow_timeline;
using tested::SlowTimeline;
using testing::ElementsAre;

Job computing(uint32_t queue, double seconds, std::vector<uint32_t> after = {},
              int32_t priority = 0) {
  return {.queue = queue, .priority = priority, .seconds = seconds, .after = std::move(after)};
}
Job message(double bytes, std::vector<Crossing> route, std::vector<uint32_t> after = {},
            double latency = 0) {
  return {.seconds = latency, .bytes = bytes, .route = std::move(route), .after = std::move(after)};
}

std::vector<double> ends(const Jobs& jobs) {
  const Timeline timeline = Timeline::open(jobs).value();
  std::vector<double> ends;
  for (uint32_t job = 0; job < timeline.size(); ++job)
    ends.push_back(seconds_of(timeline.end(job)));
  return ends;
}

// ---- By hand -----------------------------------------------------------------------------------

TEST(Timeline, AQueueTakesOneJobAtATime) {
  EXPECT_THAT(ends({2, {}, {computing(0, 1), computing(0, 2), computing(1, 4)}}),
              ElementsAre(1, 3, 4));
  EXPECT_THAT(ends({1, {}, {}}), ElementsAre());
}

TEST(Timeline, AJobWaitsForOthers) {
  EXPECT_THAT(ends({2, {}, {computing(0, 1, {2}), computing(1, 2), computing(1, 1, {1})}}),
              ElementsAre(4, 2, 3));
}

TEST(Timeline, TheHigherPriorityIsFirstButInterruptsNothing) {
  // While job 0 runs, 1 and 2 become ready; 3 is first of all from the beginning.
  EXPECT_THAT(ends({1,
                    {},
                    {computing(0, 2, {3}, 1), computing(0, 1, {3}), computing(0, 1, {3}, 5),
                     computing(0, 1, {}, -7)}}),
              ElementsAre(4, 5, 2, 1));
}

TEST(Timeline, MessagesShareLinks) {
  // Two flows at 5 B/s until the first has moved, then one at 10 B/s.
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0}}), message(30, {{0}})}}), ElementsAre(2, 4));
  // A link that is not shared, and flows that stand for two.
  EXPECT_THAT(ends({0, {{10, 0, false}}, {message(10, {{0}}), message(30, {{0}})}}),
              ElementsAre(1, 3));
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0, 2}})}}), ElementsAre(2));
}

TEST(Timeline, SecondsOfAMessagePassBehindItsBytes) {
  // The link is free again while the first message is still on its way.
  EXPECT_THAT(ends({0, {{10}}, {message(10, {{0}}, {}, 5), message(10, {{0}}, {}, 0)}}),
              ElementsAre(7, 2));
  EXPECT_THAT(ends({0, {}, {message(0, {}, {}, 3), message(9, {}, {0}, 1)}}), ElementsAre(3, 4));
}

TEST(Timeline, ComputingAndMovingOverlap) {
  const Jobs jobs = {
      1,
      {{1}},
      {computing(0, 1), message(2, {{0}}, {0}), computing(0, 2, {0}), computing(0, 1, {1, 2})}};
  EXPECT_THAT(ends(jobs), ElementsAre(1, 3, 3, 4));
  const Timeline timeline = Timeline::open(jobs).value();
  EXPECT_EQ(timeline.start(3), ticks_of(3));
  EXPECT_EQ(timeline.end(), ticks_of(4));
}

TEST(Timeline, RefusesJobsThatMakeNoSense) {
  const auto refused = [](std::vector<Job> jobs) {
    return check(Jobs{1, {{10}}, std::move(jobs)});
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused({computing(0, 1)}).ok());
  EXPECT_THAT(refused({computing(1, 1)}), says("job 0 ... queue 1 of 1"));
  EXPECT_THAT(refused({computing(0, -1)}), says("job 0 ... -1 s"));
  EXPECT_THAT(refused({computing(0, nan)}), says("job 0 ... nan"));
  EXPECT_THAT(refused({message(nan, {{0}})}), says("job 0 ... nan bytes"));
  EXPECT_THAT(refused({message(1, {{1}})}), says("job 0 ... link 1 of 1"));
  EXPECT_THAT(refused({message(1, {{0, 0}})}), says("job 0 ... 0 times"));
  EXPECT_THAT(refused({computing(0, 1, {1})}), says("job 0 ... job 1 of 1"));
  EXPECT_THAT(refused({computing(0, 1, {0})}), says("job 0 waits for job 0"));
  EXPECT_THAT(refused({computing(0, 1), computing(0, 1, {0, 2}), computing(0, 1, {1})}),
              says("waits for job ... which waits for job"));
  EXPECT_THAT(refused({message(100000, {{0}})}), refuses(ErrorCode::limit, "10000 s"));
  Job both = computing(0, 1);
  both.bytes = 1;
  EXPECT_THAT(refused({both}), says("job 0 ... queue ... bytes"));
  EXPECT_THAT(check(Jobs{0, {{0}}, {}}), says("link 0 is 0 B/s"));
}

TEST(Timeline, RefusesChangesThatMakeNoSense) {
  Timeline timeline =
      Timeline::open({1, {{10}}, {computing(0, 1), message(10, {{0}}, {0})}}).value();
  EXPECT_THAT(timeline.set_seconds(2, 1), says("job 2 ... 2"));
  EXPECT_THAT(timeline.set_seconds(0, -1), says("seconds of job 0 are -1"));
  EXPECT_THAT(timeline.set_seconds(0, 8999.5), refuses(ErrorCode::limit, "s ... 9000"));
  EXPECT_THAT(timeline.set_bytes(0, 1), says("job 0 ... queue"));
  EXPECT_THAT(timeline.set_bytes(1, 1e6), refuses(ErrorCode::limit, "s ... 9000"));
  EXPECT_THAT(timeline.set_queue(0, 1), says("job 0 ... queue 1 of 1"));
  EXPECT_THAT(timeline.set_queue(1, 0), says("job 1"));
  timeline.update();
  EXPECT_EQ(timeline.end(), ticks_of(2));
}

// ---- Against the judge -------------------------------------------------------------------------

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

Wires system_wires(Rng& rng) {
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

Wires any_wires(Rng& rng, const Draw& draw) {
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

Jobs random_jobs(Rng& rng, const Draw& draw) {
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

void expect_times(const Timeline& timeline, const Jobs& jobs) {
  const SlowTimeline slow = slow_timeline(jobs);
  for (uint32_t job = 0; job < timeline.size(); ++job) {
    ASSERT_NEAR(seconds_of(timeline.start(job)), seconds_of(slow.start[job]), 1e-9)
        << "job " << job;
    ASSERT_NEAR(seconds_of(timeline.end(job)), seconds_of(slow.end[job]), 1e-9) << "job " << job;
  }
}

void expect_same(const Timeline& changed, const Timeline& anew) {
  ASSERT_EQ(changed.end(), anew.end());
  for (uint32_t job = 0; job < anew.size(); ++job) {
    ASSERT_EQ(changed.start(job), anew.start(job)) << "job " << job;
    ASSERT_EQ(changed.end(job), anew.end(job)) << "job " << job;
  }
}

// One change of the jobs and of their timeline.
void change(Rng& rng, const Draw& draw, Jobs& jobs, Timeline& timeline) {
  const uint32_t number = static_cast<uint32_t>(rng.below(jobs.jobs.size()));
  Job& job = jobs.jobs[number];
  const bool is_message = job.queue == Job::kNoQueue;
  switch (rng.below(4)) {
    case 0:
      job.seconds = draw.seconds();
      ASSERT_TRUE(timeline.set_seconds(number, job.seconds).ok());
      break;
    case 1:
      if (!is_message) return;
      job.bytes = draw.bytes();
      ASSERT_TRUE(timeline.set_bytes(number, job.bytes).ok());
      break;
    case 2:
      job.priority = draw.priority();
      ASSERT_TRUE(timeline.set_priority(number, job.priority).ok());
      break;
    default:
      if (is_message) return;
      job.queue = static_cast<uint32_t>(rng.below(jobs.queues));
      ASSERT_TRUE(timeline.set_queue(number, job.queue).ok());
  }
}

void compare(uint64_t seed, int64_t changes) {
  Rng rng(seed);
  const Draw draw = {rng, rng.chance(0.5)};
  Jobs jobs = random_jobs(rng, draw);
  Timeline timeline = Timeline::open(jobs).value();
  expect_times(timeline, jobs);
  for (int64_t i = 0; i < changes && !jobs.jobs.empty() && !testing::Test::HasFailure(); ++i) {
    for (int64_t together = rng.chance(0.3) ? 3 : 1; together > 0; --together)
      change(rng, draw, jobs, timeline);
    timeline.update();
    expect_same(timeline, Timeline::open(jobs).value());
  }
  expect_times(timeline, jobs);
}

TEST(Timeline, HasTheTimesOfTheSlowSimulatorAfterChangesToo) {
  for (uint64_t seed = 0; seed < 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    compare(seed, 6);
  }
}

// ---- Changes -----------------------------------------------------------------------------------

// Rounds of computing on each of some queues; all wait for all between rounds. Some queues have
// half of the others' work.
Jobs rounds_of_jobs(uint32_t queues, uint32_t rounds) {
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

TEST(Timeline, AChangeSimulatesOnlyWhatItTouches) {
  Jobs jobs = rounds_of_jobs(7, 500);
  Timeline timeline = Timeline::open(jobs).value();
  const int64_t all = timeline.events();
  EXPECT_EQ(all, 500 * (7 + 2));
  // The job of an odd queue has time: nothing else changes. A job of an even queue moves the rest.
  for (uint32_t job : {8U * 250 + 1, 8U * 250, 8U * 10 + 2, 8U * 499}) {
    const int64_t before = timeline.events();
    jobs.jobs[job].seconds *= 1.25;
    ASSERT_TRUE(timeline.set_seconds(job, jobs.jobs[job].seconds).ok());
    timeline.update();
    EXPECT_LT(timeline.events() - before, 200);
    expect_same(timeline, Timeline::open(jobs).value());
  }
  const int64_t before = timeline.events();
  timeline.update();
  EXPECT_EQ(timeline.events(), before);
}

TEST(Timeline, ManyChangesOfALongTimelineAreThoseOfANewOne) {
  Rng rng(9);
  const Draw draw = {rng, true};
  Jobs jobs = rounds_of_jobs(3, 200);
  Timeline timeline = Timeline::open(jobs).value();
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    for (int64_t together = rng.between(1, 2); together > 0; --together)
      change(rng, draw, jobs, timeline);
    timeline.update();
    expect_same(timeline, Timeline::open(jobs).value());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
