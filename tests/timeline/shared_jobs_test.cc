#include "timeline/shared_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"
#include "tests/timeline/collective_systems.h"
#include "timeline/step_jobs.h"
#include "timeline/timeline.h"
#include "transport/turned.h"

namespace hone::HONE_FILE {
namespace {

using tested::draw_collective;
using tested::draw_schedule;
using tested::draw_system;
using tested::preset_of;
using tested::refuses;
using tested::says;

// The collective for member numbers, and the devices of one group.
GroupedCollective grouped(const Collective& collective) {
  GroupedCollective made = {.collective = collective, .groups = {collective.devices}};
  std::iota(made.collective.devices.begin(), made.collective.devices.end(), 0);
  return made;
}

SharedRates shared(const StepRates& rates) { return {.copy = {rates.copy}, .add = {rates.add}}; }

constexpr StepRates kRates = {.copy = 1e-7, .add = 2e-7};

double shared_seconds(const System& system, const GroupedCollective& grouped,
                      const CollectiveSchedule& schedule, bool merge) {
  SharedJobs jobs(static_cast<size_t>(system.device_count()));
  EXPECT_TRUE(add_steps(jobs, grouped, schedule, 4, shared(kRates)).ok());
  const ClassJobs made = class_jobs(jobs.program(), system, merge).value();
  return seconds_of(Timeline::open(made.jobs)->end());
}

// The judge adds the steps of each device on its own.
TEST(SharedSteps, TakeTheTimeOfAllDevices) {
  Rng rng(47);
  for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) {
    const System system = draw_system(rng);
    Collective collective = draw_collective(rng, system);
    const auto members = static_cast<int64_t>(collective.devices.size());
    if (rng.chance(0.5)) collective.elements = collective.elements / members * members;
    const CollectiveSchedule schedule = draw_schedule(rng, collective);
    SystemJobs each(system);
    const std::vector<StepRates> rates(static_cast<size_t>(system.device_count()), kRates);
    const auto programs = step_programs(collective, schedule).value();
    ASSERT_TRUE(add_steps(each, programs, {.element_bytes = 4, .rates = rates}).ok());
    const double expected = seconds_of(Timeline::open(each.jobs())->end());
    for (const bool merge : {false, true})
      EXPECT_NEAR(shared_seconds(system, grouped(collective), schedule, merge), expected, 1e-9)
          << system.name << ", " << name(collective.kind) << " of " << collective.elements << " on "
          << members << ", " << to_string(schedule);
  }
}

// Programs are as turns() says, and the first one alone is the first one of all.
TEST(SharedSteps, TurnWhereAllMembersDoTheSame) {
  int turned = 0;
  for (const int32_t members : {2, 3, 4, 7, 8})
    for (int kind = 0; kind < kCollectiveKinds; ++kind) {
      Collective all = {.kind = static_cast<CollectiveKind>(kind),
                        .devices = std::vector<int32_t>(static_cast<size_t>(members)),
                        .elements = members * int64_t{6}};
      std::iota(all.devices.begin(), all.devices.end(), 0);
      for (CollectiveSchedule schedule : schedules_of(all)) {
        if (!turns(all, schedule)) continue;
        ++turned;
        schedule.pieces = 1 + members % 3;
        const auto programs = step_programs(all, schedule).value();
        EXPECT_EQ(first_program(all, schedule).value(), programs[0]);
        for (int32_t i = 0; i < members; ++i) {
          ASSERT_EQ(programs[static_cast<size_t>(i)].steps.size(), programs[0].steps.size());
          for (size_t k = 0; k < programs[0].steps.size(); ++k) {
            const DeviceStep &one = programs[0].steps[k],
                             &other = programs[static_cast<size_t>(i)].steps[k];
            EXPECT_EQ(other.kind, one.kind);
            EXPECT_EQ(other.ticket, one.ticket);
            EXPECT_EQ(other.from.count, one.from.count);
            EXPECT_EQ(other.to.count, one.to.count);
            if (one.kind == StepKind::send || one.kind == StepKind::receive)
              EXPECT_EQ(other.peer, (one.peer + i) % members);
          }
        }
      }
    }
  EXPECT_EQ(turned, 5 * 10);
  Collective uneven = {.devices = {0, 1, 2}, .elements = 7};
  EXPECT_FALSE(turns(uneven, {.algorithm = CollectiveAlgorithm::ring}));
}

TEST(SharedSteps, OfGroupsAreThoseOfOne) {
  const System system = preset_of("tree:64x4");
  GroupedCollective many = grouped({.devices = {0, 1, 2, 3}, .elements = 1000});
  for (int32_t host = 1; host < 64; ++host)
    many.groups.push_back({host * 4, host * 4 + 1, host * 4 + 2, host * 4 + 3});
  SharedJobs jobs(256);
  ASSERT_TRUE(add_steps(jobs, many, {.algorithm = CollectiveAlgorithm::tree}, 4, {}).ok());
  const ClassJobs made = class_jobs(jobs.program(), system).value();
  EXPECT_EQ(made.classes.devices, 4);
  EXPECT_EQ(made.jobs.jobs.size(),
            class_jobs(jobs.program(), system, false)->jobs.jobs.size() / 64);
}

TEST(SharedSteps, RefuseGroupsThatMakeNoSense) {
  const auto with = [](auto change) {
    SharedJobs jobs(4);
    GroupedCollective pair = grouped({.devices = {0, 1}, .elements = 8});
    change(pair);
    return add_steps(jobs, pair, {.algorithm = CollectiveAlgorithm::ring}, 4, {});
  };
  EXPECT_TRUE(with([](GroupedCollective&) {}).ok());
  EXPECT_THAT(with([](GroupedCollective& g) { g.groups[0] = {0}; }), says("1 devices ... of 2"));
  EXPECT_THAT(with([](GroupedCollective& g) { g.groups[0] = {0, 4}; }), says("device 4 ... has 4"));
  EXPECT_THAT(with([](GroupedCollective& g) { g.groups.push_back({2, 0}); }),
              says("device 0 ... twice"));
  SharedJobs jobs(1024);
  Collective uneven = {.devices = std::vector<int32_t>(1024), .elements = 1025};
  std::iota(uneven.devices.begin(), uneven.devices.end(), 0);
  EXPECT_THAT(add_steps(jobs, grouped(uneven), {.algorithm = CollectiveAlgorithm::ring}, 4, {}),
              refuses(ErrorCode::limit, "1024 devices ... messages"));
}

}  // namespace
}  // namespace hone::HONE_FILE
