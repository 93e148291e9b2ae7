#include "timeline/collective_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/timeline/collective_systems.h"
#include "timeline/shared_jobs.h"

// The closed form beside the timeline where both can be asked, and where only one can.

namespace hone::HONE_FILE {
namespace {

using tested::preset_of;
using tested::refuses;
using enum CollectiveKind;

constexpr CollectiveKind kKinds[] = {all_reduce, all_gather, reduce_scatter, all_to_all};

// Groups along one of two axes of the devices: the rows, or the columns.
std::vector<Collective> groups_of(const System& system, CollectiveKind kind, int64_t elements,
                                  int64_t size, bool are_rows) {
  const int64_t count = system.device_count() / size;
  std::vector<Collective> groups;
  for (int64_t g = 0; g < count; ++g) {
    Collective& group = groups.emplace_back();
    group.kind = kind;
    group.elements = elements;
    for (int64_t i = 0; i < size; ++i)
      group.devices.push_back(static_cast<int32_t>(are_rows ? g * size + i : i * count + g));
  }
  return groups;
}

// Rounds begin together in the closed form, and in the timeline as soon as they can.
TEST(CollectiveRates, AreCloseToTheTimeline) {
  int compared = 0;
  for (const std::string_view preset : {"ring:8", "package:8", "tree:4x4", "torus:4x4", "tree:2x4"})
    for (const bool are_rows : {true, false})
      for (const CollectiveKind kind : kKinds)
        for (const int64_t elements : {64, 1 << 14, 1 << 22}) {
          const System system = preset_of(preset);
          CollectiveRates rates(system);
          const int64_t size = system.device_count() == 8 ? 8 : 4;
          const std::vector<Collective> groups = groups_of(system, kind, elements, size, are_rows);
          for (const CollectiveSchedule& schedule : schedules_of(groups.front())) {
            const Result<double> closed = rates.seconds(groups, schedule, 4);
            if (!closed.ok()) continue;
            const double timed = collective_seconds(groups, schedule, 4, system).value();
            EXPECT_GT(*closed, timed / 1.5) << preset << to_string(schedule) << name(kind);
            EXPECT_LT(*closed, 1.5 * timed) << preset << to_string(schedule) << name(kind);
            ++compared;
          }
        }
  EXPECT_GT(compared, 300);
}

// A ring of equal devices keeps step: the closed form is the timeline's time.
TEST(CollectiveRates, AreExactWhereAllKeepStep) {
  const System system = preset_of("ring:8");
  CollectiveRates rates(system);
  for (const CollectiveKind kind : {all_gather, all_reduce, reduce_scatter}) {
    const std::vector<Collective> groups = groups_of(system, kind, 1 << 20, 8, true);
    const CollectiveSchedule ring = {.algorithm = CollectiveAlgorithm::ring};
    const double timed = collective_seconds(groups, ring, 4, system).value();
    EXPECT_NEAR(rates.seconds(groups, ring, 4).value() / timed, 1, 1e-6) << name(kind);
  }
}

// The choice is the timeline's as long as it can be asked.
TEST(CollectiveRates, TakeTheTimelineForFewDevices) {
  const System system = preset_of("tree:4x4");
  CollectiveRates rates(system);
  const std::vector<Collective> groups = groups_of(system, all_reduce, 1 << 20, 16, true);
  const CollectivePrice exact = best_schedule(groups, 4, system).value();
  const CollectivePrice best = rates.best(groups, 4).value();
  EXPECT_EQ(best.schedule, exact.schedule);
  EXPECT_EQ(best.seconds, exact.seconds);
}

// More bytes never take less, nor do more members that have as much each.
TEST(CollectiveRates, GrowWithBytesAndMembers) {
  for (const CollectiveKind kind : kKinds) {
    double of_fewer = 0;
    for (const std::string_view preset : {"ring:64", "ring:128", "ring:256"}) {
      const System system = preset_of(preset);
      CollectiveRates rates(system);
      double before = 0;
      for (const int64_t shard : {1 << 6, 1 << 12, 1 << 18, 1 << 22}) {
        const int64_t elements = shard * system.device_count();
        const std::vector<Collective> groups =
            groups_of(system, kind, elements, system.device_count(), true);
        const Result<CollectivePrice> price = rates.best(groups, 4);
        ASSERT_TRUE(price.ok()) << preset << name(kind) << price.error().to_string();
        EXPECT_GT(price->seconds, before) << preset << name(kind) << elements;
        before = price->seconds;
      }
      EXPECT_GT(before, of_fewer) << preset << name(kind);
      of_fewer = before;
    }
  }
}

// Groups of this size along the outer axis of the devices.
struct Many {
  std::string_view preset;
  int64_t size;
};

// The judge follows the steps of devices that are alike.
double alone(const System& system, std::span<const Collective> groups,
             const CollectiveSchedule& schedule) {
  return seconds_alone(system, grouped(groups), schedule, 4).value();
}

// The more devices, the more overlap the rounds of some, so this is not as close as with few.
TEST(CollectiveRates, AreWithinTwiceTheTimelineOfManyDevices) {
  int compared = 0;
  uint64_t asked = 0;
  for (const Many& many : {Many{"torus:8x8", 64}, Many{"tree:16x8", 16}, Many{"ring:67", 67},
                           Many{"tree:16x8", 128}, Many{"torus:16x16", 16}, Many{"ring:256", 256}})
    for (const CollectiveKind kind : kKinds) {
      const System system = preset_of(many.preset);
      CollectiveRates rates(system);
      const std::vector<Collective> groups = groups_of(system, kind, 1 << 22, many.size, false);
      for (const CollectiveSchedule& schedule : schedules_of(groups.front())) {
        // Others have many messages, and take long.
        const int64_t m = schedule.neighbours;
        if ((m > 0 && m != 8) || !tested::in_share(asked++, 3)) continue;
        const Result<double> closed = rates.seconds(groups, schedule, 4);
        if (!closed.ok()) continue;
        const double timed = alone(system, groups, schedule);
        EXPECT_GT(*closed, timed / 2) << many.preset << to_string(schedule) << name(kind);
        EXPECT_LT(*closed, 2 * timed) << many.preset << to_string(schedule) << name(kind);
        ++compared;
      }
    }
  EXPECT_GT(compared, 15);
}

// A ring of 512 moves its bytes over near links, and no schedule of few rounds comes close.
TEST(CollectiveRates, ChooseByTime) {
  using enum CollectiveAlgorithm;
  for (const Many& many : {Many{"ring:512", 512}, Many{"ring:211", 211}, Many{"tree:16x8", 128}})
    for (const int64_t elements : {1 << 10, 1 << 24}) {
      const System system = preset_of(many.preset);
      CollectiveRates rates(system);
      const std::vector<Collective> groups =
          groups_of(system, all_reduce, elements, many.size, false);
      const CollectivePrice best = rates.best(groups, 4).value();
      const double taken = alone(system, groups, best.schedule);
      for (const CollectiveAlgorithm other : {ring, halving, doubling, tree})
        EXPECT_LT(taken, 1.5 * alone(system, groups, {.algorithm = other}))
            << many.preset << ", " << elements << ": " << to_string(best.schedule) << ", not "
            << name(other);
      const double by_ring = rates.seconds(groups, {.algorithm = ring}, 4).value();
      EXPECT_LE(best.seconds, CollectiveRates::kHardlyMore * by_ring) << many.preset << elements;
    }
}

// Messages that stand for others are near and far ones in their proportions.
TEST(CollectiveRates, OfSomeMessagesAreThoseOfAll) {
  for (const Many& many : std::initializer_list<Many>{{"tree:2x8", 16},
                                                      {"tree:16x8", 16},
                                                      {"tree:64x8", 512},
                                                      {"torus:8x8", 64},
                                                      {"ring:64", 64}}) {
    const System system = preset_of(many.preset);
    const std::vector<Collective> groups = groups_of(system, all_to_all, 1 << 24, many.size, true);
    const CollectiveSchedule direct = {.algorithm = CollectiveAlgorithm::direct};
    CollectiveRates all(system, int64_t{1} << 20);
    const double expected = all.seconds(groups, direct, 4).value();
    for (const int64_t each : {1, 2, 5}) {
      CollectiveRates some(system, each * system.device_count());
      const double seconds = some.seconds(groups, direct, 4).value();
      EXPECT_GT(seconds, expected / 1.8) << many.preset << " by " << each;
      EXPECT_LT(seconds, expected * 1.8) << many.preset << " by " << each;
    }
  }
}

// Thousands of devices in groups of few are more messages than the timeline takes, too.
TEST(CollectiveRates, PriceManySmallGroups) {
  const System system = preset_of("tree:8x64x8");
  CollectiveRates rates(system);
  const std::vector<Collective> rows = groups_of(system, all_reduce, 1 << 20, 8, true);
  const std::vector<Collective> columns = groups_of(system, all_reduce, 1 << 20, 512, false);
  EXPECT_THAT(best_schedule(rows, 4, system), refuses(ErrorCode::limit, "512 groups"));
  const CollectivePrice within = rates.best(rows, 4).value();
  const CollectivePrice across = rates.best(columns, 4).value();
  // As one host alone does it: hosts share no link.
  const System host = preset_of("tree:1x8");
  const double one = best_schedule(groups_of(host, all_reduce, 1 << 20, 8, true), 4, host)->seconds;
  EXPECT_LT(within.seconds, 1.5 * one);
  EXPECT_GE(within.seconds, one / 1.5);
  EXPECT_GT(across.seconds, within.seconds);
}

TEST(CollectiveRates, RefuseWhatHasNoClosedForm) {
  const System system = preset_of("ring:8");
  CollectiveRates rates(system);
  const CollectiveSchedule halving = {.algorithm = CollectiveAlgorithm::halving};
  std::vector<Collective> six = {{.kind = all_reduce, .devices = {0, 1, 2, 3, 4, 5}}};
  EXPECT_THAT(rates.seconds(six, halving, 4), refuses(ErrorCode::limit, "halving ... 6 devices"));
  six[0].devices[3] = 8;
  EXPECT_THAT(rates.seconds(six, {}, 4), refuses(ErrorCode::bad_input, "device 8 ... has 8"));
  EXPECT_THAT(rates.seconds({}, {}, 4), refuses(ErrorCode::bad_input, "no group"));
  std::vector<Collective> rows = groups_of(system, all_reduce, 64, 4, true);
  rows[1].elements = 65;
  EXPECT_THAT(rates.seconds(rows, {}, 4), refuses(ErrorCode::bad_input, "64 ... 65 ... the same"));
  rows[1].elements = 64;
  rows[1].devices[0] = 5;
  EXPECT_THAT(rates.seconds(rows, {}, 4), refuses(ErrorCode::bad_input, "device 5 twice"));
}

}  // namespace
}  // namespace hone::HONE_FILE
