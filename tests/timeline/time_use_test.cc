#include "timeline/time_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/timeline/collective_systems.h"
#include "timeline/step_jobs.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

// Device 0 computes and sends; device 1 computes, waits for the message and computes.
Jobs two_devices() {
  return {2,
          {{1e6}},
          {{.queue = 0, .seconds = 2e-3},
           {.seconds = 1e-3, .bytes = 4000, .route = {{0}}, .after = {0}},
           {.queue = 1, .seconds = 1e-3},
           {.after = {1, 2}},
           {.queue = 1, .seconds = 5e-3, .after = {3}},
           {.queue = 0, .seconds = 1e-3, .after = {0}}}};
}

TEST(TimeUse, FindsTheChainThatDecides) {
  const Jobs jobs = two_devices();
  EXPECT_THAT(longest_chain(Timeline::open(jobs).value(), jobs), ElementsAre(0, 1, 4));
  // A job may wait for its queue.
  const Jobs queue = {1, {}, {{.queue = 0, .seconds = 1}, {.queue = 0, .seconds = 2}}};
  EXPECT_THAT(longest_chain(Timeline::open(queue).value(), queue), ElementsAre(0, 1));
  const Jobs none = {1, {}, {{.queue = 0}}};
  EXPECT_THAT(longest_chain(Timeline::open(none).value(), none), ElementsAre());
}

TEST(TimeUse, SaysWhatQueuesWaitFor) {
  const Jobs jobs = two_devices();
  const std::vector<QueueTime> times = queue_times(Timeline::open(jobs).value(), jobs);
  ASSERT_EQ(times.size(), 2);
  EXPECT_EQ(times[0].computing, ticks_of(3e-3));
  EXPECT_EQ(times[0].end, ticks_of(3e-3));
  EXPECT_TRUE(times[0].waits.empty());
  EXPECT_EQ(times[1].computing, ticks_of(6e-3));
  ASSERT_EQ(times[1].waits.size(), 1);
  EXPECT_EQ(times[1].waits[0].begin, ticks_of(1e-3));
  EXPECT_EQ(times[1].waits[0].end, ticks_of(7e-3));
  EXPECT_EQ(times[1].waits[0].job, 4);
  EXPECT_EQ(times[1].waits[0].cause, 1);  // over job 3, which takes no time
}

TEST(TimeUse, SaysHowBusyLinksAre) {
  const Jobs jobs = {0,
                     {{1e6}, {1e6}},
                     {{.bytes = 1000, .route = {{0}}},
                      {.seconds = 9, .bytes = 1000, .route = {{0}}},
                      {.bytes = 500, .route = {{0}, {1, 2}}, .after = {1}}}};
  const std::vector<LinkTime> times = link_times(Timeline::open(jobs).value(), jobs);
  EXPECT_EQ(times[0].busy, ticks_of(2e-3) + ticks_of(1e-3));  // the latency counts for no link
  EXPECT_EQ(times[0].bytes, 2500);
  EXPECT_EQ(times[1].busy, ticks_of(1e-3));
  EXPECT_EQ(times[1].bytes, 1000);
}

// Each job of a chain ends when the next one starts, from the beginning to the end; a queue
// computes, waits, or has ended.
TEST(TimeUse, AddsUpToTheWhole) {
  Rng rng(51);
  for (int i = 0; i < 60; ++i) {
    const System system = tested::draw_system(rng);
    const Collective collective = tested::draw_collective(rng, system);
    const auto programs = step_programs(collective, tested::draw_schedule(rng, collective)).value();
    SystemJobs jobs(system);
    const std::vector<StepRates> rates(static_cast<size_t>(system.device_count()), {1e-6, 2e-6});
    std::vector<std::vector<uint32_t>> begins;
    for (const DeviceProgram& program : programs)
      begins.push_back(
          {jobs.compute(program.device, rng.chance(0.3) ? 0 : rng.uniform(0, 1e-2), {})});
    const auto ends = add_steps(jobs, programs, {.rates = rates}, begins).value();
    for (size_t k = 0; k < programs.size(); ++k)
      jobs.compute(programs[k].device, rng.uniform(0, 1e-2), {ends[k]});
    const Timeline timeline = Timeline::open(jobs.jobs()).value();
    Ticks at = 0;
    for (const uint32_t job : longest_chain(timeline, jobs.jobs())) {
      EXPECT_EQ(timeline.start(job), at);
      at = timeline.end(job);
    }
    EXPECT_EQ(at, timeline.end());
    for (const QueueTime& time : queue_times(timeline, jobs.jobs())) {
      Ticks sum = time.computing;
      for (const QueueWait& wait : time.waits) {
        sum += wait.end - wait.begin;
        EXPECT_EQ(timeline.end(wait.cause), wait.end);
        EXPECT_LT(timeline.start(wait.cause), wait.end);
      }
      EXPECT_EQ(sum, time.end);
    }
    for (const LinkTime& time : link_times(timeline, jobs.jobs()))
      EXPECT_LE(time.busy, timeline.end());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
