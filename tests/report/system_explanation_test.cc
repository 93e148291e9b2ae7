#include "report/system_explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "cost/program_price.h"
#include "ir/text.h"
#include "program/device_memory.h"
#include "report/trace.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"
#include "timeline/time_use.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

Target sample() { return parse_target(kSampleTarget, "t").value(); }
System preset(std::string_view text) { return preset_system(text, sample()).value(); }

// The model as it is compiled for each target of a system.
class Planned {
 public:
  Planned(std::string_view text, const System& system) {
    const Graph graph = parse_graph(text).value();
    for (const Target& target : system.targets) {
      code_.push_back(std::make_unique<Compilation>(graph, target));
      TargetPlan& plan = plans_.emplace_back();
      plan.graph = code_.back()->graph().value();
      plan.plan = code_.back()->plan().value();
      plan.cost = &code_.back()->cost();
      if (!has_exchanges(*plan.graph)) plan.program = code_.back()->program().value();
    }
  }
  std::span<const TargetPlan> plans() const { return plans_; }

 private:
  std::vector<std::unique_ptr<Compilation>> code_;
  std::vector<TargetPlan> plans_;
};

constexpr std::string_view kAlone =
    "graph @alone(%x: f32[64, 256], %w: f32[256, 256]) {\n"
    "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %s = sort %y {axis = 1}\n"
    "  return %s\n}\n";

std::string with_sum(std::string_view attributes) {
  return fmt::format(
      "graph @sum(%x: f32[64, 256], %w: f32[256, 4096], %v: f32[4096, 16]) {{\n"
      "  %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  %z = all_reduce %y {{{}}}\n"
      "  %u = dot %z, %v {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  return %u\n}}\n",
      attributes);
}

TEST(SystemExplanation, OfAProgramAloneIsItsPrice) {
  const System system = preset("ring:3");
  const Planned planned(kAlone, system);
  const SystemTimeline explained = system_timeline(system, planned.plans(), false).value();
  const TargetPlan& plan = planned.plans()[0];
  const double price = hone::price(*plan.program, *plan.cost).value().total();
  EXPECT_NEAR(seconds_of(explained.timeline.end()), price, 1e-12);
  for (const QueueTime& time : queue_times(explained.timeline, explained.jobs())) {
    EXPECT_EQ(time.computing, explained.timeline.end());
    EXPECT_TRUE(time.waits.empty());
  }
  ASSERT_EQ(explained.memory.size(), 3);
  EXPECT_GE(explained.memory[2], 4 * (64 * 256 + 256 * 256 + 64 * 256));
  // One memory, whoever asks.
  EXPECT_EQ(explained.memory[2], device_memory(*plan.program, 3).value().total());
  const std::string text = explanation_text(system, explained, "alone", 2);
  EXPECT_THAT(text, HasSubstr("computing"));
  EXPECT_THAT(text, HasSubstr("and 1 more sorts of devices"));
  EXPECT_THAT(text, testing::Not(HasSubstr("busy")));  // no link is used
}

TEST(SystemExplanation, HasTheCollectivesOfAGraph) {
  const System system = preset("ring:4");
  const Planned planned(with_sum("kind = sum, group_size = 4"), system);
  const SystemTimeline explained = system_timeline(system, planned.plans(), false).value();
  ASSERT_EQ(explained.exchanges.size(), 1);
  const TimedExchange& sum = explained.exchanges[0];
  EXPECT_EQ(sum.name, "z");
  EXPECT_EQ(sum.bytes, 4 * 64 * 4096);
  EXPECT_EQ(sum.groups, 1);
  EXPECT_EQ(sum.members, 4);
  // All begin at once and wait for the sum alone: the parts follow each other.
  Ticks computing = 0;
  for (uint32_t job = 0; job < explained.jobs().jobs.size(); ++job)
    if (explained.jobs().jobs[job].queue == 0 && !explained.is_step(job))
      computing += explained.timeline.end(job) - explained.timeline.start(job);
  EXPECT_NEAR(seconds_of(explained.timeline.end()), seconds_of(computing) + sum.schedule.seconds,
              1e-11);
  const std::string text = explanation_text(system, explained, "sum", 10);
  EXPECT_THAT(text, HasSubstr("all_reduce z"));
  EXPECT_THAT(text, HasSubstr("1 of 4"));
  EXPECT_THAT(text, HasSubstr("link ring "));
  EXPECT_THAT(text, HasSubstr(to_string(sum.schedule.schedule)));
  // The same once more.
  const Planned again(with_sum("kind = sum, group_size = 4"), system);
  EXPECT_EQ(
      explanation_text(system, system_timeline(system, again.plans(), false).value(), "sum", 10),
      text);
}

TEST(SystemExplanation, LetsFastDevicesWaitForSlowOnes) {
  System system = preset("ring:2");
  Target slow = sample();
  slow.name = "slow";
  for (double& peak : slow.peaks) peak /= 4;
  slow.memory_one_core /= 4;
  slow.memory_all_cores /= 4;
  system.targets.push_back(slow);
  system.devices[0].count = 1;
  system.devices.push_back(system.devices[0]);
  system.devices[1].target = 1;
  ASSERT_TRUE(check(system).ok());
  const Planned planned(with_sum("kind = sum, group_size = 2"), system);
  const SystemTimeline explained = system_timeline(system, planned.plans(), false).value();
  const std::vector<QueueTime> times = queue_times(explained.timeline, explained.jobs());
  EXPECT_GT(times[1].computing, times[0].computing);
  ASSERT_FALSE(times[0].waits.empty());
  EXPECT_EQ(explained.name_of(times[0].waits.front().cause), "all_reduce z");
}

// ---- Devices that do the same ------------------------------------------------------------------

TEST(SystemExplanation, TellsOfDevicesThatAreAlikeOnce) {
  const System system = preset("ring:4");
  const Planned planned(with_sum("kind = sum, group_size = 4"), system);
  const SystemTimeline few = system_timeline(system, planned.plans()).value();
  const SystemTimeline all = system_timeline(system, planned.plans(), false).value();
  EXPECT_EQ(few.classes.classes.devices, 1);
  EXPECT_NEAR(seconds_of(few.timeline.end()), seconds_of(all.timeline.end()), 1e-9);
  EXPECT_EQ(few.devices_name(0), "0-3");
  const std::string text = explanation_text(system, few, "sum", 10);
  EXPECT_THAT(text, HasSubstr("\n0-3 "));
  EXPECT_THAT(text, HasSubstr(" and 3 alike"));
  EXPECT_THAT(text, testing::Not(HasSubstr("more sorts of devices")));
}

// Each host of a system does what the others do, so more hosts are no more to simulate.
TEST(SystemExplanation, SimulatesThousandsOfDevicesAsAFew) {
  const auto events = [](std::string_view name, int64_t group) {
    const System system = preset(name);
    const Planned planned(with_sum(fmt::format("kind = sum, group_size = {}", group)), system);
    const SystemTimeline timed = system_timeline(system, planned.plans()).value();
    return std::pair(timed.timeline.events(), seconds_of(timed.timeline.end()));
  };
  const auto [few, short_time] = events("tree:1x8", 8);
  const auto [many, long_time] = events("tree:512x8", 8);
  EXPECT_EQ(many, few);
  EXPECT_NEAR(long_time, short_time, 1e-9);
  // A group of all devices has more rounds, and its members are as many kinds.
  const auto [one_group, whole_time] = events("ring:1024", 1024);
  EXPECT_LT(one_group, 1024 * 8);
  EXPECT_GT(whole_time, short_time);
}

TEST(SystemExplanation, CanBeDrawn) {
  const System system = preset("ring:2");
  const Planned planned(with_sum("kind = sum, group_size = 2"), system);
  const SystemTimeline explained = system_timeline(system, planned.plans(), false).value();
  Trace trace;
  add_timeline(trace, explained.timeline, explained.jobs(), names_of(explained));
  const std::string json = trace.json("t");
  for (std::string_view what : {"device 1", "ring 0 > 1", "all_reduce z"})
    EXPECT_THAT(json, HasSubstr(std::string(what)));
}

TEST(SystemExplanation, SaysHowOftenALoopExchanges) {
  constexpr std::string_view kLoop =
      "graph @loop(%x: f32[8]) {\n"
      "  %f = scan %x {carried = 1, length = [3]} body (%s: f32[8]) {\n"
      "    %n = all_reduce %s {kind = sum, group_size = 2}\n    return %n\n  }\n"
      "  return %f\n}\n";
  const System system = preset("ring:2");
  const Planned planned(kLoop, system);
  const SystemTimeline timeline = system_timeline(system, planned.plans()).value();
  ASSERT_EQ(timeline.exchanges.size(), 1U);
  EXPECT_EQ(timeline.exchanges[0].times, 3);
  EXPECT_THAT(explanation_text(system, timeline, "loop", 10),
              testing::HasSubstr("all_reduce n, 3 times"));
}

TEST(SystemExplanation, RefusesCollectivesOfOtherSystems) {
  const auto refused = [](std::string_view text, std::string_view name) {
    const System system = preset(name);
    const Planned planned(text, system);
    return system_timeline(system, planned.plans());
  };
  EXPECT_THAT(refused(with_sum("kind = sum, group_size = 4"), "ring:6"),
              says("all_reduce ... groups of 4 ... 6 devices"));
  EXPECT_THAT(refused(with_sum("kind = sum, group_size = 2, groups = [0, 2]"), "ring:2"),
              says("all_reduce ... device 2 ... has 2"));
  EXPECT_THAT(refused(with_sum("kind = sum, group_size = 2, groups = [0, 2, 1, 3]"), "ring:8"),
              says("all_reduce ... groups of 4 devices ... has 8"));
}

}  // namespace
}  // namespace hone::HONE_FILE
