#include "search/placed_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cost/analytic.h"
#include "ir/text.h"
#include "place/placer.h"
#include "program/devices.h"
#include "program/frame.h"
#include "program/run.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/place/random_problem.h"
#include "tests/program/lower_testing.h"
#include "tests/program/spmd_testing.h"
#include "zoo/random/random_graph.h"

// Graphs that are placed: the programs of the devices compute what the reference does.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::refuses;
using tested::run_by_threads;
using tested::says;

std::vector<std::shared_ptr<const Cost>> costs_of(const System& system) {
  std::vector<std::shared_ptr<const Cost>> costs;
  for (const Target& target : system.targets)
    costs.push_back(std::make_shared<AnalyticCost>(target));
  return costs;
}

// A target that a System may have.
Target machine() {
  Target target = two_cores();
  for (CacheLevel& cache : target.caches) cache.cores = std::min(cache.cores, target.cores);
  return target;
}

// Two sorts of devices at times.
System drawn_system(Rng& rng) {
  constexpr std::string_view kSystems[] = {"ring:1", "ring:2", "ring:3", "package:4", "tree:2x2"};
  System system = preset_system(rng.pick(kSystems), machine()).value();
  if (system.device_count() > 1 && rng.chance(0.4)) {
    Target slow = machine();
    slow.name = "slow";
    slow.peak(DType::f32) /= 4;
    system.targets.push_back(slow);
    system.devices[0].count -= 1;
    system.devices.push_back({1, 1, system.devices[0].memory_bytes});
  }
  return system;
}

// The inputs that a device has, by name.
std::vector<Tensor> inputs_of(const Graph& graph, const Program& program,
                              const std::vector<Tensor>& inputs) {
  std::vector<Tensor> own;
  for (const program::Buffer& buffer : program.main->buffers)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (buffer.role == program::Role::input && graph.name(graph.inputs()[i]) == buffer.name)
        own.push_back(inputs[i]);
  return own;
}

void check_placements(uint64_t first, uint64_t count) {
  uint64_t run_count = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const Graph source = random_graph(
        {.seed = seed, .min_steps = 2, .max_steps = 6, .max_elements = 64, .continuous = true});
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    Rng rng(seed);
    const System system = drawn_system(rng);
    const auto costs = costs_of(system);
    const Result<PlacedGraph> placed = place_problem(source, system, costs);
    if (!placed.ok()) {  // nothing is left to place
      EXPECT_THAT(placed, says("no nodes"));
      continue;
    }
    const PlaceJudge judge(placed->problem);
    const DevicePlacement placement = tested::random_placement(PlaceUnits(judge), rng);
    ASSERT_TRUE(judge.timeline(placement).ok());
    const Result<PlacedPrograms> made_of = placed_programs(*placed, placement, costs);
    if (!made_of.ok()) {
      EXPECT_THAT(made_of, refuses(ErrorCode::unsupported, "exchanges data"));
      continue;
    }
    const DevicePrograms& programs = made_of->programs;
    const auto devices = static_cast<int32_t>(system.device_count());
    ASSERT_TRUE(check_no_deadlock(programs, devices).ok());
    const std::vector<Tensor> inputs = random_graph_inputs(placed->graph, seed);
    DeviceTensors own;
    for (int32_t d = 0; d < devices; ++d)
      own.push_back(inputs_of(placed->graph, programs.of(d), inputs));
    const Result<DeviceTensors> made = run_by_threads(devices, [&](const DevicePlace& place) {
      return run(programs.of(place.device), own[static_cast<size_t>(place.device)],
                 {.place = place});
    });
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    const std::vector<Tensor> wanted = evaluated(placed->graph, inputs);
    // Outputs stand with the device that has their value, in the graph's order.
    std::vector<Tensor> joined;
    std::vector<size_t> next(made->size());
    for (const int32_t device : made_of->output_device) {
      joined.push_back(
          (*made)[static_cast<size_t>(device)].at(next[static_cast<size_t>(device)]++));
    }
    expect_same(joined, wanted);
    ++run_count;
  }
  EXPECT_GT(run_count, count / 2);
}

TEST(PlacedGraph, RandomPlacementsComputeWhatTheReferenceDoes) { check_placements(0, 300); }
TEST(PlacedGraph, DISABLED_SweepRandomPlacements) { check_placements(1'000, 3'000); }

// A placement as a plan, and back: the same kernels, devices and order, and programs that compute
// the same.
TEST(PlacedGraph, APlanSaysThePlacement) {
  uint64_t run_count = 0;
  for (uint64_t seed = 0; seed < 12 && !testing::Test::HasFailure(); ++seed) {
    const Graph source = random_graph(
        {.seed = seed, .min_steps = 2, .max_steps = 6, .max_elements = 64, .continuous = true});
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    Rng rng(seed);
    const System system = drawn_system(rng);
    const auto costs = costs_of(system);
    const Result<PlacedGraph> placed = place_problem(source, system, costs);
    if (!placed.ok()) continue;
    const PlaceJudge judge(placed->problem);
    const DevicePlacement placement = tested::random_placement(PlaceUnits(judge), rng);
    const std::string text = print(placed->plan, steps_of(*placed, placement));
    const Result<DevicePlan> read = parse_device_plan(text, "p");
    ASSERT_TRUE(read.ok()) << read.error().to_string() << text;
    const Result<PlacedGraph> again =
        place_problem(source, system, costs, {.plan = read->plan.plan, .steps = read->steps});
    ASSERT_TRUE(again.ok()) << again.error().to_string() << text;
    ASSERT_EQ(again->problem.nodes.size(), placed->problem.nodes.size()) << text;
    const DevicePlacement said = said_placement(*again).value();
    EXPECT_EQ(said.device, placement.device);
    // Times may differ in their last bits only if kernels did.
    EXPECT_EQ(PlaceJudge(again->problem).value(said, PlaceGoal::step),
              judge.value(placement, PlaceGoal::step));
    EXPECT_EQ(print(again->plan, steps_of(*again, said)), text);
    const Result<PlacedPrograms> made = placed_programs(*again, said, costs);
    if (!made.ok()) continue;
    const std::vector<Tensor> inputs = random_graph_inputs(placed->graph, seed);
    const std::vector<Tensor> all = inputs_of_devices(again->graph, made->programs, inputs);
    DeviceTensors own;
    size_t next = 0;
    const auto devices = static_cast<int32_t>(system.device_count());
    for (int32_t d = 0; d < devices; ++d) {
      const size_t count =
          program::buffers_of(*made->programs.of(d).main, program::Role::input).size();
      own.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(next),
                       all.begin() + static_cast<std::ptrdiff_t>(next + count));
      next += count;
    }
    const DeviceTensors each =
        run_by_threads(devices, [&](const DevicePlace& place) {
          return run(made->programs.of(place.device), own[static_cast<size_t>(place.device)],
                     {.place = place});
        }).value();
    std::vector<Tensor> given;
    for (const std::vector<Tensor>& one : each) given.insert(given.end(), one.begin(), one.end());
    expect_same(outputs_of_graph(*made, given), evaluated(placed->graph, inputs));
    ++run_count;
  }
  EXPECT_GT(run_count, 5U);
}

// A plan with devices behind it.
DevicePlan planned(std::string_view plan, std::string_view devices) {
  return parse_device_plan(fmt::format("{}\ndevices @g {{ {} }}\n", plan, devices), "p").value();
}
Result<PlacedGraph> placed_by(const DevicePlan& plan, const Graph& graph, const System& system) {
  return place_problem(graph, system, costs_of(system),
                       {.plan = plan.plan.plan, .steps = plan.steps});
}

TEST(DevicePlan, IsReadBackAsItWasAndItsErrorsHaveAPlace) {
  const std::string text =
      "plan @g {\n  fuse @\"k 0\" = {%a}\n}\ndevices @g {\n  device %b = 0\n"
      "  device @\"k 0\" = 1\n  priority %b = 7\n}\n";
  const DevicePlan plan = parse_device_plan(text, "p").value();
  EXPECT_EQ(print(plan.plan.plan, plan.steps), text);
  EXPECT_EQ(plan.lines.at("device %b"), 5);
  EXPECT_TRUE(has_devices(text));
  EXPECT_FALSE(has_devices("plan @g { fuse @devices = {%a} }"));
  EXPECT_EQ(parse_device_plan("plan @g {}", "p")->steps, StepDevices());
  const auto error = [](std::string_view block) {
    return parse_device_plan(fmt::format("plan @g {{}}\n{}", block), "p");
  };
  EXPECT_THAT(error("devices @h {}"), says("p:2:9 ... @g"));
  EXPECT_THAT(error("devices @g { layout %a = 1 }"), says("p:2 ... device, priority or '}'"));
  EXPECT_THAT(error("devices @g { device %a = -1 }"), says("p:2"));
  EXPECT_THAT(error("devices @g { device %a = 1 device %a = 1 }"), says("%a is decided twice"));
  EXPECT_THAT(error("devices @g { device %1 = 1 }"), says("plans use names"));
  EXPECT_THAT(error("devices @g {} more"), says("end of the text"));
  EXPECT_THAT(error("plan @g {}\ndevices @g {}"), says("2 plans"));
}

constexpr std::string_view kThree =
    "graph @g(%x: f32[64, 64]) {\n"
    "  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %b = sort %a {axis = 0}\n"
    "  %c = dot %b, %x {lhs_contract = [1], rhs_contract = [0]}\n"
    "  return %c\n}\n";

TEST(PlacedGraph, WhatAPlanLeavesOpenIsPlaced) {
  const Graph graph = parse_graph(kThree).value();
  const System system = preset_system("ring:2", machine()).value();
  const DevicePlan plan = planned("plan @g { fuse @k0 = {%a} fuse @k1 = {%b} fuse @k2 = {%c} }",
                                  "device @k1 = 1 priority %c = 9");
  const PlacedGraph placed = placed_by(plan, graph, system).value();
  ASSERT_EQ(placed.problem.nodes.size(), 3U);
  EXPECT_EQ(placed.problem.nodes[1].pinned, 1);
  EXPECT_EQ(placed.problem.nodes[0].pinned, kAnywhere);
  const DevicePlacement said = said_placement(placed).value();
  EXPECT_EQ(said.device[1], 1U);
  EXPECT_EQ(said.priority, (std::vector<int32_t>{0, 0, 9}));
}

TEST(PlacedGraph, EntriesOfAPlanThatDoNotFitAreNamed) {
  const Graph graph = parse_graph(kThree).value();
  const System system = preset_system("ring:2", machine()).value();
  const auto placed = [&](std::string_view entries) {
    return placed_by(planned("plan @g { fuse @k0 = {%a} }", entries), graph, system);
  };
  EXPECT_THAT(placed("device @k0 = 2"),
              refuses(ErrorCode::bad_input, "device @k0 ... no device 2"));
  EXPECT_THAT(placed("device @k0 = 1 device %a = 0"), says("device @k0 ... one kernel"));
  EXPECT_THAT(placed("device @k7 = 0"), says("device @k7 ... no kernel"));
  EXPECT_THAT(placed("device %q = 0"), says("device %q"));
  EXPECT_THAT(placed("priority %x = 0"), says("priority %x"));
  EXPECT_THAT(placed_by(planned("plan @g hash 0x0000000000000001 {}", ""), graph, system),
              says("another graph"));
  // Where an entry stands is known.
  const DevicePlan plan = planned("plan @g { fuse @k0 = {%a} }", "\n\n device @k0 = 2");
  EXPECT_THAT(Result<PlacedGraph>(plan.placed(placed_by(plan, graph, system).error())),
              says("p:4 ... no device 2"));
}

// A device computes by priority: of two kernels that are ready at once, the more urgent comes
// first.
TEST(PlacedGraph, DevicesComputeInTheOrderOfTheTimeline) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[64, 64]) {\n"
                          "  %a = sort %x {axis = 0}\n"
                          "  %b = sort %x {axis = 1}\n"
                          "  %c = neg %a\n  %d = exp %b\n"
                          "  return %c, %d\n}\n")
                          .value();
  const System system = preset_system("ring:2", machine()).value();
  for (const bool is_a_first : {true, false}) {
    const DevicePlan plan =
        planned("plan @g { fuse @k0 = {%a} fuse @k1 = {%b} fuse @k2 = {%c} fuse @k3 = {%d} }",
                fmt::format("device @k0 = 0 device @k1 = 0 device @k2 = 1 device @k3 = 1 "
                            "priority @k{} = 5",
                            is_a_first ? 0 : 1));
    const PlacedGraph placed = placed_by(plan, graph, system).value();
    const PlacedPrograms made =
        placed_programs(placed, said_placement(placed).value(), costs_of(system)).value();
    const std::string text = print(made.programs.of(0));
    const size_t a = text.find("(%a)"), b = text.find("(%b)");
    ASSERT_NE(a, text.npos) << text;
    ASSERT_NE(b, text.npos) << text;
    EXPECT_EQ(a < b, is_a_first) << text;
  }
}

TEST(PlacedGraph, HasTheKernelsOfThePlanAndWhatTheyExchange) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[64, 64]) {\n"
                          "  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}\n"
                          "  %b = dot %x, %x {lhs_contract = [0], rhs_contract = [0]}\n"
                          "  %c = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}\n"
                          "  return %c\n}\n")
                          .value();
  const System system = preset_system("ring:2", machine()).value();
  const PlacedGraph placed = place_problem(graph, system, costs_of(system)).value();
  // The planner may join two products; what is apart is tied by a tensor.
  ASSERT_GE(placed.problem.nodes.size(), 2U);
  ASSERT_EQ(placed.problem.tensors.size(), placed.problem.nodes.size() - 1);
  for (const PlaceTensor& tensor : placed.problem.tensors) EXPECT_EQ(tensor.held, 64 * 64 * 4);
  for (const PlaceNode& node : placed.problem.nodes) EXPECT_GT(node.seconds[0], 0) << node.name;
  EXPECT_EQ(placed.problem.nodes[0].held, 64 * 64 * 4);  // the input
}

TEST(PlacedGraph, RefusesWhatExchangesDataItself) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[4]) { %s = all_reduce %x {kind = sum, group_size = 2} "
                          "return %s }")
                          .value();
  const System system = preset_system("ring:2", machine()).value();
  const auto costs = costs_of(system);
  const Result<PlacedGraph> placed = place_problem(graph, system, costs);
  if (!placed.ok()) return;
  const DevicePlacement placement = {std::vector<uint32_t>(placed->problem.nodes.size(), 0), {}};
  EXPECT_THAT(placed_programs(*placed, placement, costs),
              refuses(ErrorCode::unsupported, "exchanges data"));
}

}  // namespace
}  // namespace hone::HONE_FILE
