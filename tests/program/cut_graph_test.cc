#include "shard/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/random_plan.h"
#include "planner/planner.h"
#include "program/devices.h"
#include "program/lower/join.h"
#include "program/run.h"
#include "tests/base/says_testing.h"
#include "tests/program/lower_testing.h"
#include "tests/program/spmd_testing.h"
#include "tests/transport/processes.h"
#include "transport/threads.h"
#include "zoo/random/random_graph.h"

// Graphs that are cut over devices, against the reference of the whole graph.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::refuses;
using tested::run_by_threads;
using tested::run_devices;
using tested::RunDevice;
using tested::same_bits;
using tested::says;

RunDevice by_interpreter(const DevicePrograms& programs, const DeviceTensors& inputs,
                         uint64_t seed = 0) {
  return [&programs, &inputs, seed](const DevicePlace& place) {
    ProgramRunOptions options = {.place = place};
    if (seed != 0) options.order_seed = seed + static_cast<uint64_t>(place.device);
    return run(programs.of(place.device), inputs[static_cast<size_t>(place.device)], options);
  };
}

std::vector<int32_t> random_devices(const Graph& graph, int32_t devices, Rng& rng) {
  std::vector<int32_t> of;
  // Runs of nodes, or each node anywhere.
  const double change = rng.chance(0.5) ? 1 : 0.3;
  int32_t device = 0;
  for (size_t i = 0; i < graph.node_count(); ++i) {
    if (rng.chance(change)) device = static_cast<int32_t>(rng.between(0, devices - 1));
    of.push_back(device);
  }
  return of;
}

Result<DevicePrograms> programs_of(const Graph& graph, const GraphCut& cut, uint64_t seed) {
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const Graph ready = prepared(piece.graph);
    const Plan plan = seed % 4 == 0 ? complete(ready, {}, two_cores()).value()
                                    : random_plan(ready, two_cores(), seed);
    pieces.push_back(HONE_TRY(lower(ready, plan, two_cores())));
  }
  return join_pieces(graph, cut, pieces);
}

// The inputs that each device has, by name.
DeviceTensors own_inputs(const Graph& graph, const DevicePrograms& programs,
                         const std::vector<Tensor>& inputs) {
  DeviceTensors all;
  for (int32_t d = 0; d < *programs.devices(); ++d) {
    std::vector<Tensor>& own = all.emplace_back();
    for (const program::Buffer& buffer : programs.of(d).main->buffers)
      for (size_t i = 0; i < inputs.size(); ++i)
        if (buffer.role == program::Role::input && graph.name(graph.inputs()[i]) == buffer.name)
          own.push_back(inputs[i]);
  }
  return all;
}

// The outputs of the graph, from the devices that have them.
std::vector<Tensor> joined(const GraphCut& cut, const DeviceTensors& made) {
  std::vector<Tensor> outputs;
  std::vector<size_t> next(made.size());
  for (const int32_t device : cut.output_device) {
    const auto d = static_cast<size_t>(device);
    outputs.push_back(made[d].at(next[d]++));
  }
  return outputs;
}

TEST(CutGraph, HasPiecesInAnOrderThatNobodyWaitsIn) {
  const Graph graph = prepared(
      "graph @g(%x: f32[4]) {\n"
      "  %a = exp %x\n  %b = neg %a\n  %c = tanh %b\n  %d = add %a, %c\n  return %d, %x, %b\n}\n");
  std::vector<int32_t> of(graph.node_count(), 0);
  for (NodeId n : graph.nodes())
    if (graph.name(graph.result(n)) == "b") of[n.index] = 1;
  const GraphCut cut = cut_graph(graph, of, 2).value();
  // %b is of device 1; what comes before it and what comes behind it are two pieces.
  ASSERT_EQ(cut.pieces.size(), 3U);
  EXPECT_EQ(cut.pieces[1].device, 1);
  EXPECT_EQ(cut.messages.size(), 2U);
  const DevicePrograms programs = programs_of(graph, cut, 0).value();
  EXPECT_THAT(print(programs),
              says("program @g.0 on 0 ... receive from 1 tag 1 (%b) ... call ... send to 1 tag 0 "
                   "(%a) ... wait 0 () -> (%b) ... program @g.1 on 1"));
  const Tensor x = Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>{0, 1, 2, -1});
  const DeviceTensors made =
      run_by_threads(2, by_interpreter(programs, own_inputs(graph, programs, {x}))).value();
  expect_same(joined(cut, made), evaluated(graph, {x}));
}

TEST(CutGraph, RefusesWhatHasDevicesAlready) {
  const Graph graph = prepared(
      "graph @g(%x: f32[4]) { %s = all_reduce %x {kind = sum, group_size = 2} return %s }");
  EXPECT_THAT(cut_graph(graph, std::vector<int32_t>(graph.node_count(), 0), 2),
              refuses(ErrorCode::unsupported, "'%s' (all_reduce)"));
  EXPECT_THAT(cut_graph(graph, std::vector<int32_t>(graph.node_count(), 2), 2),
              says("device 2 ... 2"));
  EXPECT_THAT(cut_graph(graph, {}, 2), says("0 devices"));
}

// Links with latencies of their own, so that messages come in other orders.
ExchangeOptions slow_links() {
  EmulatedLinks links;
  links.route = [](int32_t from, int32_t to) {
    return EmulatedRoute{{static_cast<uint32_t>(from)}, 2e-5 * ((3 * from + 5 * to) % 7)};
  };
  links.share = [](std::span<const std::span<const uint32_t>> /*flows*/, std::span<double> rates) {
    for (double& rate : rates) rate = 1e9;
  };
  ExchangeOptions options;
  options.links = std::make_shared<const EmulatedLinks>(links);
  return options;
}

Result<DeviceTensors> run_by_processes(int32_t devices, bool by_tcp, const RunDevice& run) {
  const std::vector<int32_t> owned(static_cast<size_t>(devices), 1);
  const std::vector<std::unique_ptr<Transport>> transports = tested::join_all(
      owned.size(), by_tcp ? tested::by_tcp(owned) : tested::by_shared_memory(owned));
  return run_devices(
      devices,
      [&](int32_t device) -> Transport& { return *transports[static_cast<size_t>(device)]; }, run);
}

void check_cuts(uint64_t first, uint64_t count, uint64_t every_process) {
  uint64_t cuts = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const bool continuous = seed % 2 == 0;
    const Graph source = random_graph({.seed = seed,
                                       .min_steps = continuous ? 8 : 2,
                                       .max_steps = continuous ? 12 : 4,
                                       .max_elements = 64,
                                       .continuous = continuous,
                                       .repeats_outputs = seed % 3 == 0});
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    const Graph graph = prepared(source);
    Rng rng(seed);
    const auto devices = static_cast<int32_t>(rng.between(1, 4));
    const Result<GraphCut> cut = cut_graph(graph, random_devices(graph, devices, rng), devices);
    if (!cut.ok()) {  // groups of one device
      EXPECT_THAT(cut, refuses(ErrorCode::unsupported, "exchanges data"));
      continue;
    }
    ++cuts;
    const DevicePrograms programs = programs_of(graph, *cut, seed).value();
    const std::string text = print(programs);
    SCOPED_TRACE(text.substr(0, 20'000));
    const Result<DevicePrograms> again = parse_device_programs(text);
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    ASSERT_EQ(print(*again), text);
    const Status proof = check_no_deadlock(programs, devices);
    ASSERT_TRUE(proof.ok()) << proof.error().to_string();
    const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
    const DeviceTensors own = own_inputs(graph, programs, inputs);
    const Result<DeviceTensors> made = run_by_threads(devices, by_interpreter(programs, own));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    expect_same(joined(*cut, *made), evaluated(graph, inputs));
    const std::unique_ptr<Transport> slow = make_thread_transport(devices, slow_links()).value();
    const Result<DeviceTensors> later = run_devices(
        devices, [&](int32_t) -> Transport& { return *slow; },
        by_interpreter(programs, own, seed + 1));
    ASSERT_TRUE(later.ok()) << later.error().to_string();
    ASSERT_EQ(same_bits(*made, *later), "");
    if (seed % every_process != 0) continue;
    const Result<DeviceTensors> apart =
        run_by_processes(devices, seed % 2 == 0, by_interpreter(programs, own));
    ASSERT_TRUE(apart.ok()) << apart.error().to_string();
    ASSERT_EQ(same_bits(*made, *apart), "");
  }
  EXPECT_GT(cuts, count / 2);
}

TEST(CutGraph, RandomGraphsComputeWhatTheReferenceDoes) { check_cuts(0, 60, 10); }
TEST(CutGraph, DISABLED_SweepRandomGraphs) { check_cuts(1'000, 3'000, 20); }

}  // namespace
}  // namespace hone::HONE_FILE
