#include "timeline/collective_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/base/says_testing.h"
#include "tests/timeline/collective_systems.h"
#include "tests/timeline/slow_timeline.h"
#include "timeline/step_jobs.h"

namespace hone::HONE_FILE {
namespace {

using tested::preset_of;
using tested::refuses;
using tested::says;

std::vector<Collective> all_devices(const System& system, CollectiveKind kind, int64_t elements) {
  Collective all = {.kind = kind, .devices = {}, .elements = elements};
  for (int32_t i = 0; i < system.device_count(); ++i) all.devices.push_back(i);
  return {all};
}

std::string best(std::string_view preset, CollectiveKind kind, int64_t elements) {
  const System system = preset_of(preset);
  return to_string(best_schedule(all_devices(system, kind, elements), 4, system)->schedule);
}

TEST(CollectivePrice, ChoosesFewMessagesForFewBytes) {
  using enum CollectiveKind;
  // Links between all pairs: one latency and no more.
  EXPECT_EQ(best("package:8", all_gather, 8), "direct");
  // Far neighbours of a ring are many links away; many bytes are better off with the next one.
  EXPECT_THAT(best("ring:8", all_reduce, int64_t{1} << 24), testing::StartsWith("two_rings"));
  // Only a ring within each host spares the links between hosts.
  EXPECT_THAT(best("tree:4x4", all_reduce, int64_t{1} << 24),
              testing::StartsWith("hierarchical of 4"));
  // A long chain is fast if it is cut.
  EXPECT_THAT(best("ring:4", broadcast, int64_t{1} << 24), testing::HasSubstr("8 pieces"));
}

// The judge prices each schedule by the slow simulator, and knows which ones there are by itself.
TEST(CollectivePrice, IsTheLeastOfAllSchedulesThatFit) {
  Rng rng(43);
  for (int i = 0; i < 12 && !testing::Test::HasFailure(); ++i) {
    const System system = tested::draw_system(rng);
    const std::vector<Collective> groups = {tested::draw_collective(rng, system)};
    const std::vector<StepRates> rates(static_cast<size_t>(system.device_count()),
                                       step_rates(system.targets[0]));
    const std::vector<CollectivePrice> priced = collective_prices(groups, 4, system).value();
    double least = std::numeric_limits<double>::infinity();
    size_t count = 0;
    for (int algorithm = 0; algorithm < kCollectiveAlgorithms; ++algorithm)
      for (int32_t neighbours = 0; neighbours < system.device_count(); ++neighbours)
        for (const int32_t pieces : {1, 2, 4, 8}) {
          const CollectiveSchedule schedule = {static_cast<CollectiveAlgorithm>(algorithm),
                                               neighbours, pieces};
          const bool is_hierarchical = schedule.algorithm == CollectiveAlgorithm::hierarchical;
          // A group of one neighbour is a ring; only one that is hierarchical has neighbours.
          if (is_hierarchical ? neighbours < 2 || neighbours >= std::ssize(groups[0].devices)
                              : neighbours != 0)
            continue;
          const auto programs = step_programs(groups[0], schedule);
          if (!programs.ok()) continue;
          SystemJobs jobs(system);
          ASSERT_TRUE(add_steps(jobs, *programs, {.element_bytes = 4, .rates = rates}).ok());
          const tested::SlowTimeline slow = tested::slow_timeline(jobs.jobs());
          least = std::min(least, seconds_of(*std::ranges::max_element(slow.end)));
          ++count;
        }
    EXPECT_EQ(priced.size(), count);
    EXPECT_NEAR(best_schedule(groups, 4, system)->seconds, least, 1e-9);
    for (size_t k = 0; k < priced.size(); ++k) {
      EXPECT_EQ(priced[k].seconds,
                collective_seconds(groups, priced[k].schedule, 4, system).value());
      if (k > 0) EXPECT_LE(priced[k - 1].seconds, priced[k].seconds);
    }
  }
}

// Two groups that cross the same links take longer than one.
TEST(CollectivePrice, CountsAllGroupsAtOnce) {
  const System system = preset_of("tree:2x2");
  Collective first = {.kind = CollectiveKind::permute,
                      .devices = {0, 2},
                      .elements = 1 << 20,
                      .pairs = {{0, 1}, {1, 0}}};
  Collective second = first;
  second.devices = {1, 3};
  const CollectiveSchedule direct = {.algorithm = CollectiveAlgorithm::direct};
  const double one = collective_seconds(std::vector{first}, direct, 4, system).value();
  const double both = collective_seconds(std::vector{first, second}, direct, 4, system).value();
  EXPECT_GT(both, 1.9 * one);
}

// A permute has few messages, also among devices that are too many for other collectives.
TEST(CollectivePrice, KnowsPermutesOfManyDevices) {
  const System system = preset_of("ring:512");
  std::vector<Collective> groups = all_devices(system, CollectiveKind::permute, 1 << 10);
  for (int32_t from = 0; from + 1 < 512; ++from) groups[0].pairs.emplace_back(from, from + 1);
  const Result<CollectivePrice> all = best_schedule(groups, 4, system);
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  groups[0].pairs.resize(1);
  const double one = best_schedule(groups, 4, system)->seconds;
  EXPECT_NEAR(all->seconds / one, 1, 1e-6);  // no link is shared
}

TEST(CollectivePrice, RefusesWhatItCannotPrice) {
  const System system = preset_of("ring:4");
  EXPECT_THAT(best_schedule({}, 4, system), says("no group"));
  const std::vector<Collective> far = {{.devices = {0, 4}, .elements = 8}};
  EXPECT_THAT(best_schedule(far, 4, system), says("device 4 ... has 4"));
  const System many = preset_of("ring:64");
  EXPECT_THAT(best_schedule(all_devices(many, CollectiveKind::all_reduce, 8), 4, many),
              refuses(ErrorCode::limit, "64 devices ... messages"));
}

}  // namespace
}  // namespace hone::HONE_FILE
