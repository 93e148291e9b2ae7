#include "timeline/alike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"
#include "timeline/timeline.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

System preset(std::string_view text) {
  return preset_system(text, parse_target(kSampleTarget, "t").value()).value();
}

// Each device sends to the one that is `by` further on, around the end.
Pattern shift(int64_t devices, int64_t by) {
  Pattern pattern;
  for (int64_t i = 0; i < devices; ++i)
    pattern.push_back(static_cast<uint32_t>((i + by) % devices));
  return pattern;
}

// The same by one, within rows of this many devices.
Pattern shift_in_rows(int64_t devices, int64_t row) {
  Pattern pattern;
  for (int64_t i = 0; i < devices; ++i)
    pattern.push_back(static_cast<uint32_t>(i / row * row + (i + 1) % row));
  return pattern;
}

// Computing, and messages to the next device that come with it; then both again.
SharedProgram halo(int64_t devices, int64_t rounds) {
  SharedProgram program = {.patterns = {shift(devices, 1)}};
  for (int64_t round = 0; round < rounds; ++round) {
    const uint32_t first = static_cast<uint32_t>(program.jobs.size());
    DeviceJob compute = {.seconds = {1e-3}}, send = {.pattern = 0, .bytes = 1e6};
    if (round > 0) compute.got = {first - 1};
    send.after = {first};
    program.jobs.push_back(compute);
    program.jobs.push_back(send);
  }
  return program;
}

TEST(ClassJobs, AllDevicesOfARingAreOne) {
  const ClassJobs made = class_jobs(halo(8, 3), preset("ring:8")).value();
  EXPECT_EQ(made.classes.devices, 1);
  EXPECT_EQ(made.classes.links, 2);  // forward and backward
  EXPECT_EQ(made.jobs.jobs.size(), 6);
  const Timeline timeline = Timeline::open(made.jobs).value();
  EXPECT_NEAR(seconds_of(timeline.end(made.job(5, 5))), 3 * (1e-3 + 1e6 / 12e9 + 2e-6), 1e-12);
}

TEST(ClassJobs, DevicesWithOtherTargetsOrPlacesAreOthers) {
  System system = preset("ring:8");
  system.targets.push_back(system.targets[0]);
  system.targets[1].name = "slow";
  system.devices = {{7, 0, 1 << 30}, {1, 1, 1 << 30}};
  ASSERT_TRUE(check(system).ok());
  EXPECT_EQ(class_jobs(halo(8, 1), system).value().classes.devices, 8);  // by distance from it
  EXPECT_EQ(class_jobs(halo(9, 1), preset("mesh:3x3")).value().classes.devices, 9);
  // Two hosts of four: the last device of each sends to the other host.
  EXPECT_EQ(class_jobs(halo(8, 1), preset("tree:2x4")).value().classes.devices, 4);
}

TEST(ClassJobs, AFewJobsStandForThousandsOfDevices) {
  for (const auto& [text, row, classes] :
       {std::tuple("ring:4096", 4096, 1U), {"torus:64x64", 64, 1U}, {"tree:512x8", 4096, 8U}}) {
    SharedProgram program = halo(4096, 50);
    program.patterns[0] = shift_in_rows(4096, row);
    const ClassJobs made = class_jobs(program, preset(text)).value();
    EXPECT_EQ(made.classes.devices, classes) << text;
    EXPECT_EQ(made.jobs.jobs.size(), 100U * classes) << text;
  }
}

TEST(ClassJobs, RefusesProgramsThatMakeNoSense) {
  const System system = preset("ring:4");
  const auto with = [&](auto change) {
    SharedProgram program = halo(4, 2);
    change(program);
    return class_jobs(program, system);
  };
  EXPECT_TRUE(with([](SharedProgram&) {}).ok());
  EXPECT_THAT(with([](SharedProgram& p) { p.patterns[0].pop_back(); }),
              says("pattern 0 ... 3 ... 4"));
  EXPECT_THAT(with([](SharedProgram& p) { p.patterns[0][1] = 4; }), says("device 1 ... device 4"));
  EXPECT_THAT(with([](SharedProgram& p) { p.patterns[0][1] = 1; }),
              says("pattern 0 ... several ... 1"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[1].pattern = 1; }),
              says("job 1 ... pattern 1 of 1"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].queue = 1; }), says("job 0 ... queue 1 of 1"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].seconds = {}; }),
              says("job 0 ... 0 targets of 1"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].after = {9}; }), says("job 0 ... job 9 of 4"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].got = {2}; }), says("job 0 ... message 2"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].got = {3}; }), says("waits"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].there = {1}; }), says("job 0 ... job 1 of 4"));
  EXPECT_THAT(with([](SharedProgram& p) { p.jobs[0].doers = 0; }), says("job 0 ... set 0 of 0"));
  EXPECT_THAT(with([](SharedProgram& p) { p.sets = {{true}}; }), says("set ... 1 devices ... 4"));
  EXPECT_THAT(class_jobs(halo(4, 2), system, false, 15), says("4 devices ... 15 jobs"));
}

// ---- Against all devices one by one ------------------------------------------------------------

SharedProgram random_program(Rng& rng, const System& system) {
  const int64_t devices = system.device_count();
  SharedProgram program = {.queues = static_cast<uint32_t>(rng.between(1, 2))};
  for (int64_t i = rng.between(1, 3); i > 0; --i) {
    Pattern pattern = shift(devices, rng.between(0, devices - 1));
    const int64_t bit = int64_t{1} << rng.below(3);
    if (rng.chance(0.3) && devices % (2 * bit) == 0)
      for (int64_t d = 0; d < devices; ++d)
        pattern[static_cast<size_t>(d)] = static_cast<uint32_t>(d ^ bit);
    if (rng.chance(0.2)) pattern[rng.below(pattern.size())] = kNobody;
    program.patterns.push_back(pattern);
  }
  if (rng.chance(0.3)) {
    std::vector<bool>& set = program.sets.emplace_back(devices);
    const size_t step = rng.chance(0.8) ? 2 : 3;
    for (size_t d = 0; d < set.size(); ++d) set[d] = d % step != 0;
  }
  for (uint32_t number = 0; number < 14; ++number) {
    DeviceJob job;
    if (!program.sets.empty() && rng.chance(0.3))
      job.doers = static_cast<uint32_t>(rng.below(program.sets.size()));
    if (rng.chance(0.5)) {
      job.queue = static_cast<uint32_t>(rng.below(program.queues));
      job.priority = static_cast<int32_t>(rng.below(2));
      for (size_t i = 0; i < system.targets.size(); ++i)
        job.seconds.push_back(rng.uniform(0, 1e-3));
    } else {
      job.pattern = static_cast<uint32_t>(rng.below(program.patterns.size()));
      job.bytes = rng.uniform(1, 1e7);
    }
    for (uint32_t before = 0; before < number; ++before) {
      if (rng.chance(0.2)) job.after.push_back(before);
      if (program.jobs[before].pattern != DeviceJob::kNoPattern && rng.chance(0.4))
        job.got.push_back(before);
      if (job.pattern != DeviceJob::kNoPattern && rng.chance(0.1)) job.there.push_back(before);
    }
    program.jobs.push_back(job);
  }
  return program;
}

TEST(ClassJobs, HaveTheTimesOfAllDevices) {
  Rng rng(4);
  constexpr std::string_view presets[] = {"ring:8",  "mesh:2x4",   "torus:4x4", "tree:2x4",
                                          "local:4", "tree:2x2x2", "package:4", "torus:2x2x4"};
  int64_t merged = 0;
  for (int i = 0; i < 400; ++i) {
    System system = preset(rng.pick(presets));
    if (rng.chance(0.3)) {
      system.targets.push_back(system.targets[0]);
      system.targets[1].name = "slow";
      const int64_t half = system.device_count() / 2;
      system.devices = {{half, 0, 1 << 30}, {system.device_count() - half, 1, 1 << 30}};
    }
    const SharedProgram program = random_program(rng, system);
    const ClassJobs few = class_jobs(program, system).value();
    const ClassJobs all = class_jobs(program, system, false).value();
    merged += few.classes.devices < all.classes.devices ? 1 : 0;
    const Timeline short_one = Timeline::open(few.jobs).value();
    const Timeline long_one = Timeline::open(all.jobs).value();
    for (int64_t device = 0; device < system.device_count(); ++device)
      for (uint32_t job = 0; job < program.jobs.size(); ++job)
        if (const uint32_t set = program.jobs[job].doers;
            set == DeviceJob::kAll || program.sets[set][static_cast<size_t>(device)])
          ASSERT_NEAR(seconds_of(short_one.end(few.job(device, job))),
                      seconds_of(long_one.end(all.job(device, job))), 1e-9)
              << system.name << ", case " << i << ", device " << device << ", job " << job;
  }
  EXPECT_GT(merged, 200);
}

}  // namespace
}  // namespace hone::HONE_FILE
