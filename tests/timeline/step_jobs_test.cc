#include "timeline/step_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/says_testing.h"
#include "tests/timeline/collective_systems.h"
#include "timeline/timeline.h"
#include "transport/virtual_network.h"

namespace hone::HONE_FILE {
namespace {

using tested::draw_collective;
using tested::draw_schedule;
using tested::draw_system;
using tested::preset_of;
using tested::says;
using testing::ElementsAre;

constexpr int64_t kElementBytes = 4;

double timeline_seconds(const System& system, std::span<const DeviceProgram> programs,
                        const StepJobOptions& options) {
  SystemJobs jobs(system);
  const std::vector<uint32_t> ends = add_steps(jobs, programs, options).value();
  EXPECT_EQ(ends.size(), programs.size());
  const Timeline timeline = Timeline::open(jobs.jobs()).value();
  for (const uint32_t end : ends) EXPECT_LE(timeline.end(end), timeline.end());
  return seconds_of(timeline.end());
}

double virtual_seconds(const System& system, std::span<const DeviceProgram> programs,
                       bool buffers) {
  std::vector<std::vector<std::byte>> rooms;
  std::vector<StepMemory> memory;
  const auto room = [&](int64_t elements) {
    return std::span(rooms.emplace_back(static_cast<size_t>(elements * kElementBytes)));
  };
  rooms.reserve(3 * programs.size());
  for (const DeviceProgram& each : programs) {
    const auto input = room(each.input);
    const auto output = room(each.output);
    memory.push_back({DType::f32, input, output, room(each.scratch)});
  }
  VirtualNetwork network(static_cast<int32_t>(system.device_count()),
                         {.buffers = buffers, .links = emulated_links(Topology(system))});
  const Status status = run_virtually(programs, network, memory);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return network.now();
}

std::vector<DeviceProgram> ring_programs(int32_t devices, int64_t elements) {
  Collective collective = {.devices = {}, .elements = elements};
  for (int32_t i = 0; i < devices; ++i) collective.devices.push_back(i);
  return step_programs(collective, {.algorithm = CollectiveAlgorithm::ring}).value();
}

// ---- By hand -----------------------------------------------------------------------------------

TEST(StepJobs, OfARingTakeWhatTheFormulaSays) {
  System system = preset_of("ring:4");
  system.links[0].bytes_per_second = 1e6;
  system.links[0].latency = 1e-3;
  const std::vector<DeviceProgram> programs = ring_programs(4, 1000);
  // 2 * 3 messages of 1,000 bytes one after another, and 3 additions of as many.
  EXPECT_NEAR(timeline_seconds(system, programs, {}), 6 * 2e-3, 1e-12);
  const StepJobOptions options = {.rates = std::vector<StepRates>(4, {.copy = 0, .add = 1e-6})};
  EXPECT_NEAR(timeline_seconds(system, programs, options), 6 * 2e-3 + 3e-3, 1e-12);
}

TEST(StepJobs, BeginAfterOthersAndEndByProgram) {
  System system = preset_of("ring:2");
  system.links[0].bytes_per_second = 1e6;
  system.links[0].latency = 0;
  SystemJobs jobs(system);
  jobs.name("before");
  const uint32_t before = jobs.compute(1, 2e-3, {});
  jobs.name("broadcast");
  const Collective collective = {
      .kind = CollectiveKind::broadcast, .devices = {0, 1}, .elements = 250, .root = 0};
  const auto programs = step_programs(collective, {.algorithm = CollectiveAlgorithm::tree}).value();
  const std::vector<uint32_t> ends =
      add_steps(jobs, programs, {}, std::vector<std::vector<uint32_t>>{{}, {before}}).value();
  const Timeline timeline = Timeline::open(jobs.jobs()).value();
  // The message waits for its receiver; the sender's is buffered.
  EXPECT_EQ(timeline.end(ends[0]), 0);
  EXPECT_EQ(timeline.end(ends[1]), ticks_of(3e-3));
  EXPECT_EQ(jobs.name_of(before), "before");
  EXPECT_EQ(jobs.name_of(ends[1]), "broadcast");
}

TEST(StepJobs, RefuseDevicesThatTheSystemDoesNotHave) {
  SystemJobs jobs(preset_of("ring:3"));
  EXPECT_THAT(add_steps(jobs, ring_programs(4, 8), {}), says("device 3 ... the system has 3"));
}

TEST(StepJobs, TakeTheRatesOfTheTarget) {
  const Target target = preset_of("ring:2").targets[0];
  EXPECT_DOUBLE_EQ(step_rates(target).copy, 2 / 12e9);
  EXPECT_DOUBLE_EQ(step_rates(target).add, 3 / 12e9);
}

// ---- Against the virtual clock -----------------------------------------------------------------

// The virtual clock moves real bytes between state machines, and knows nothing of jobs.
TEST(StepJobs, TakeTheTimeOfTheVirtualClock) {
  Rng rng(41);
  for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) {
    const System system = draw_system(rng);
    const Collective collective = draw_collective(rng, system);
    const CollectiveSchedule schedule = draw_schedule(rng, collective);
    const std::vector<DeviceProgram> programs = step_programs(collective, schedule).value();
    for (const bool buffers : {true, false})
      EXPECT_NEAR(timeline_seconds(system, programs, {.buffers = buffers}),
                  virtual_seconds(system, programs, buffers), 1e-9)
          << system.name << ", " << name(collective.kind) << " of " << collective.elements << ", "
          << to_string(schedule);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
