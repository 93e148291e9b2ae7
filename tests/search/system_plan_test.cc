#include "search/system_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "cost/system_timeline.h"
#include "ir/text.h"
#include "plan/collectives.h"
#include "program/devices.h"
#include "program/lower/lower.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"
#include "timeline/shared_jobs.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Target sample() { return parse_target(kSampleTarget, "t").value(); }

// A ring of devices whose links have this bandwidth.
System ring(int64_t devices, double bytes_per_second) {
  System system = preset_system(fmt::format("ring:{}", devices), sample()).value();
  system.links[0].bytes_per_second = bytes_per_second;
  system.links[0].latency = 1e-6;
  return system;
}

SystemPlans planned(std::string_view text, const System& system,
                    const SystemPlanOptions& options = {}) {
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  return plan_for_system(parse_graph(text).value(), system, {{cost}}, options).value();
}

std::string gathered(int64_t members, int64_t rows) {
  return fmt::format(
      "graph @g(%x: f32[{1}, 512], %w: f32[512, 512]) {{\n"
      "  %all = all_gather %x {{axis = 0, group_size = {0}}}\n"
      "  %y = dot %all, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  return %y\n}}\n",
      members, rows);
}
std::string scattered(int64_t members, int64_t rows) {
  return fmt::format(
      "graph @s(%x: f32[{1}, 512], %w: f32[512, 512]) {{\n"
      "  %all = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  %y = reduce_scatter %all {{kind = sum, axis = 0, group_size = {0}}}\n"
      "  return %y\n}}\n",
      members, members * rows);
}

// A ring on which computing and moving take about the same.
System balanced(std::string_view text, int64_t devices, int64_t rows) {
  const double computing = planned(text, ring(devices, 1e15), {.overlaps = false}).seconds;
  const double moved = static_cast<double>((devices - 1) * rows * 512 * 4);
  return ring(devices, moved / computing);
}

TEST(SystemPlan, DividesAProductThatTakesAsLongAsItsExchange) {
  for (const int64_t devices : {2, 4}) {
    constexpr int64_t kRows = 128;
    for (const std::string& text : {gathered(devices, kRows), scattered(devices, kRows)}) {
      const System system = balanced(text, devices, kRows);
      const SystemPlans plans = planned(text, system);
      ASSERT_EQ(plans.overlaps.size(), 1U);
      EXPECT_EQ(plans.overlaps[0].value, "y");
      ASSERT_EQ(plans.plans[0].rewrite.size(), 1U) << text << plans.overlaps[0].after;
      EXPECT_EQ(plans.plans[0].rewrite[0].rule, plans.overlaps[0].overlap);
      EXPECT_LT(plans.seconds, plans.undivided * (1 - kLeastGain));
      // It is a plan as any other.
      EXPECT_EQ(parse_plan(print(plans.plans[0])).value(), plans.plans[0]);
      const Program program = lower(plans.graphs[0], plans.plans[0], system.targets[0]).value();
      EXPECT_TRUE(check_no_deadlock(program, static_cast<int32_t>(devices)).ok());
    }
  }
}

TEST(SystemPlan, LeavesAProductWholeWhereStepsDoNotPay) {
  // Three messages, one after another, take longer than the two of a gather.
  System system = ring(4, 1e12);
  system.links[0].latency = 1e-3;
  const SystemPlans plans = planned(gathered(4, 8), system);
  ASSERT_EQ(plans.overlaps.size(), 1U);
  EXPECT_EQ(plans.overlaps[0].overlap, "") << plans.overlaps[0].after;
  EXPECT_TRUE(plans.plans[0].rewrite.empty());
  EXPECT_EQ(plans.seconds, plans.undivided);
}

TEST(SystemPlan, IsNeverSlowerThanWithoutSteps) {
  for (const double bandwidth : {1e7, 1e9, 1e11}) {
    const SystemPlans plans = planned(gathered(3, 7), ring(3, bandwidth));
    EXPECT_LE(plans.seconds, plans.undivided);
  }
}

// Exchanges in a loop, of which one stands in a loop in there, take their time as often as they
// run.
TEST(SystemPlan, CountsExchangesOfLoopsAsOftenAsTheyRun) {
  const auto timed = [](int64_t steps, const System& system) {
    const SystemPlans plans = planned(
        fmt::format("graph @g(%x: f32[1024], %s: f32[{}, 1024], %t: f32[3, 1024]) {{\n"
                    "  %y, %u = scan %x, %t, %s {{carried = 2}} body (%c: f32[1024], "
                    "%v: f32[3, 1024], %d: f32[1024]) {{\n"
                    "    %z = scan %c, %v {{carried = 1}} body (%e: f32[1024], %f: f32[1024]) {{\n"
                    "      %g = mul %e, %f\n"
                    "      %h = all_reduce %g {{kind = sum, group_size = 2}}\n"
                    "      return %h\n"
                    "    }} : f32[1024]\n"
                    "    %a = add %z, %d\n"
                    "    %b = all_reduce %a {{kind = sum, group_size = 2}}\n"
                    "    return %b, %v\n"
                    "  }} : f32[1024], f32[3, 1024]\n"
                    "  return %y\n}}\n",
                    steps),
        system, {.overlaps = false});
    const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
    return timeline_of(plans, system, {{cost}}).value();
  };
  const System system = ring(2, 1e9);
  double before = 0;
  for (const int64_t steps : {5, 10, 15}) {
    const SystemTimeline timeline = timed(steps, system);
    ASSERT_EQ(timeline.exchanges.size(), 2U);
    double alone = 0;
    std::vector<int64_t> times;
    for (const TimedExchange& one : timeline.exchanges) {
      times.push_back(one.times);
      alone += static_cast<double>(one.times) * one.schedule.seconds;
    }
    EXPECT_THAT(times, testing::UnorderedElementsAre(steps, 3 * steps));
    const double seconds = seconds_of(timeline.timeline.end());
    EXPECT_GT(seconds, alone);
    EXPECT_GT(seconds, before);
    before = seconds;
  }
}

TEST(SystemPlan, CollectivesHaveTheBestScheduleOfTheSystem) {
  constexpr std::string_view kSum =
      "graph @sum(%x: f32[1000, 100]) {\n"
      "  %s = all_reduce %x {kind = sum, group_size = 4}\n  return %s\n}\n";
  const System slow = ring(4, 1e9);
  const SystemPlans plans = planned(kSum, slow);
  const Collective collective = {CollectiveKind::all_reduce, {0, 1, 2, 3}, 100'000};
  EXPECT_EQ(plans.plans[0].collective.at("s"),
            best_schedule({&collective, 1}, 4, slow).value().schedule);
  // A schedule that is said stays.
  SystemPlanOptions options;
  options.said.emplace_back().collective["s"] = parse_collective_schedule("tree").value();
  EXPECT_EQ(to_string(planned(kSum, slow, options).plans[0].collective.at("s")), "tree");
}

// In a loop, where the timeline does not look; and the same size is asked about once.
TEST(SystemPlan, CollectivesInRegionsHaveTheBestScheduleToo) {
  const Graph graph = parse_graph(R"(
    graph @sums(%x: f32[1000, 100], %o: f32[N]) -> (f32[1000, 100], f32[N]) where N in 1..9 {
      %zero = constant 0 : f32[]
      %y, %n = while %x, %zero
        condition(%a: f32[1000, 100], %i: f32[]) {
          %c = compare %i, 3 {direction = lt}
          return %c
        }
        body(%a: f32[1000, 100], %i: f32[]) {
          %s = all_reduce %a {kind = sum, group_size = 4}
          %j = add %i, 1
          return %s, %j
        }
      %p = all_reduce %o {kind = sum, group_size = 4}
      return %y, %p
    })")
                          .value();
  const Collective collective = {CollectiveKind::all_reduce, {0, 1, 2, 3}, 100'000};
  for (const double latency : {1e-7, 1e-1}) {
    System system = ring(4, 1e9);
    system.links[0].latency = latency;
    Plan plan;
    ASSERT_TRUE(add_best_schedules(graph, system, plan).ok());
    EXPECT_TRUE(plan.collective.empty());  // the size of %p is open
    ASSERT_EQ(plan.region.size(), 1U);
    EXPECT_EQ(plan.region.begin()->second.collective.at("s"),
              best_schedule({&collective, 1}, 4, system).value().schedule);
    plan.region.begin()->second.collective["s"] = parse_collective_schedule("tree").value();
    ASSERT_TRUE(add_best_schedules(graph, system, plan).ok());
    EXPECT_EQ(to_string(plan.region.begin()->second.collective.at("s")), "tree");
  }
}

// Too many messages for a timeline of each device: the closed form decides, and the timeline of
// devices that are alike finds no other schedule much faster. A permute has few messages.
TEST(SystemPlan, CollectivesOfManyDevicesHaveAScheduleToo) {
  const auto exchange = [](std::string_view op, int64_t devices) {
    return parse_graph(fmt::format("graph @g(%x: f32[1000000]) {{\n"
                                   "  %s = {}, group_size = {}}}\n"
                                   "  return %s\n}}\n",
                                   op, devices))
        .value();
  };
  constexpr std::string_view kSum = "all_reduce %x {kind = sum";
  constexpr std::string_view kPermute = "permute %x {pairs = [0, 1, 1, 0]";
  Plan plan;
  for (const int64_t devices : {256, 512}) {
    const System system = ring(devices, 1e9);
    const Graph graph = exchange(kSum, devices);
    plan = {};
    ASSERT_TRUE(add_best_schedules(graph, system, plan).ok());
    Collective all = {.kind = CollectiveKind::all_reduce, .devices = {}, .elements = 1'000'000};
    for (int32_t i = 0; i < devices; ++i) all.devices.push_back(i);
    const auto alone = [&](const CollectiveSchedule& schedule) {
      return seconds_alone(system, grouped({&all, 1}), schedule, 4).value();
    };
    const CollectiveSchedule best = plan.collective.at("s");
    const CollectiveSchedule usual =
        default_schedule(graph.op(graph.producer(graph.outputs()[0])), 4'000'000);
    EXPECT_LE(alone(best), 1.2 * alone(usual)) << devices << to_string(best);
    for (const std::string_view other : {"ring", "two_rings", "halving", "doubling", "tree"})
      EXPECT_LE(alone(best), 1.2 * alone(parse_collective_schedule(other).value()))
          << devices << to_string(best) << ", not " << other;
  }
  for (const int64_t devices : {8, 256}) {
    plan = {};
    ASSERT_TRUE(add_best_schedules(exchange(kPermute, devices), ring(devices, 1e9), plan).ok());
    EXPECT_EQ(plan.collective.size(), 1U) << devices;
  }
}

TEST(SystemPlan, ConstantsOfAProductStay) {
  const System system = ring(2, 1e9);
  const SystemPlans plans = planned(
      "graph @g(%x: f32[64, 4]) {\n"
      "  %w = constant [1, 2, 3, 4] : f32[4]\n"
      "  %all = all_gather %x {axis = 0, group_size = 2}\n"
      "  %y = dot %all, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  return %y\n}\n",
      system);
  EXPECT_EQ(plans.overlaps.size(), 1U);
}

TEST(SystemPlan, RefusesGroupsOfOtherSystems) {
  const System system = ring(3, 1e9);
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  EXPECT_THAT(plan_for_system(parse_graph(gathered(2, 8)).value(), system, {{cost}}),
              refuses(ErrorCode::bad_input, "'%all' (all_gather) ... groups of 2 ... 3 devices"));
}

}  // namespace
}  // namespace hone::HONE_FILE
