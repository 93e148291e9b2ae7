#include "search/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "learn/training_step.h"
#include "program/devices.h"
#include "program/frame.h"
#include "search/stage_sharding.h"
#include "session/program_text.h"
#include "shard/shard_plan.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/lower_testing.h"
#include "tests/search/pipeline_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// ---- Programs -----------------------------------------------------------------------------------

std::vector<std::shared_ptr<const Cost>> costs_of(const System& system) {
  return {std::make_shared<AnalyticCost>(system.targets[0])};
}

Graph step_of(std::string_view model, int64_t batch, std::string_view optimizer = "adam") {
  const Graph graph = build_zoo_model(model, {.size = ZooSize::tiny, .batch = batch}).value();
  Result<TrainingStep> step =
      training_step(graph, {.optimizer = find_optimizer(optimizer).value()});
  EXPECT_TRUE(step.ok()) << step.error().to_string();
  return step.ok() ? std::move(step->graph) : Graph();
}

// Empty: the devices together compute what the graph does.
std::string judge_pipeline(const Graph& graph, const PipelinePlan& plan, const System& system,
                           uint64_t seed) {
  const auto costs = costs_of(system);
  Result<PipelinePrograms> made = pipeline_programs(graph, plan, system, costs);
  if (!made.ok()) return made.error().to_string();
  const auto devices = static_cast<int32_t>(system.device_count());
  if (const Status good = check_no_deadlock(made->programs.programs, devices); !good.ok())
    return good.error().to_string();
  std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
  // The squares that an optimizer keeps are not negative.
  for (Tensor& input : inputs)
    if (is_real(input.dtype())) {
      std::vector<double> numbers(static_cast<size_t>(input.elements()));
      input.read_reals(0, std::span(numbers));
      for (double& number : numbers) number = std::abs(number);
      input = Tensor::from_reals(input.type(), numbers);
    }
  const Result<std::vector<Tensor>> want = evaluate(graph, inputs);
  if (!want.ok()) return want.error().to_string();
  const Result<std::vector<Tensor>> parts =
      interpret(made->programs.programs, devices,
                inputs_of_devices(made->graph, made->programs.programs, made->parts(inputs)),
                int64_t{1} << 30);
  if (!parts.ok()) return parts.error().to_string();
  return tested::difference(made->whole(outputs_of_graph(made->programs, *parts)), *want, 2e-3);
}

TEST(Pipeline, TrainsAsOneDeviceDoes) {
  const Graph step = step_of("mlp", 8);
  for (const int64_t devices : {2, 3}) {
    const System system = ring(devices);
    for (const PipelineSchedule schedule : kPipelineSchedules) {
      // The model has too few layers for six stages.
      if (devices == 3 && schedule == PipelineSchedule::interleaved) continue;
      PipelineOptions options = {.micro_batches = devices == 2 ? 4 : 3, .schedule = schedule};
      options.stages = schedule == PipelineSchedule::interleaved ? 2 * static_cast<int>(devices)
                                                                 : static_cast<int>(devices);
      const Result<ChosenPipeline> made = choose_pipeline(step, system, costs_of(system), options);
      ASSERT_TRUE(made.ok()) << name(schedule) << made.error().to_string();
      EXPECT_EQ(made->plan.schedule, schedule);
      EXPECT_EQ(judge_pipeline(step, made->plan, system, 1), "") << print(made->plan);
    }
  }
}

// A weight is updated where it is used, and its states are there, too.
TEST(Pipeline, UpdatesWeightsWhereTheyAreUsed) {
  const Graph step = step_of("mlp", 8);
  const System system = ring(2);
  const ChosenPipeline made =
      choose_pipeline(step, system, costs_of(system),
                      {.stages = 2, .micro_batches = 4, .schedule = PipelineSchedule::one_forward})
          .value();
  const PipelinePrograms programs =
      pipeline_programs(step, made.plan, system, costs_of(system)).value();
  int64_t inputs = 0;
  for (const uint32_t program : programs.programs.programs.of_device)
    inputs += std::ssize(program::buffers_of(*programs.programs.programs.programs[program].main,
                                             program::Role::input));
  // No device but the one has an input, beside rate and step, and the rows if both need them.
  EXPECT_LE(inputs, std::ssize(step.inputs()) + 4);
}

TEST(Pipeline, PassesABatchThroughStages) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny, .batch = 8}).value();
  const System system = ring(4);
  const ChosenPipeline made =
      choose_pipeline(graph, system, costs_of(system), {.stages = 2, .micro_batches = 4}).value();
  EXPECT_EQ(made.plan.stages.size(), 2u);
  size_t devices = 0;
  for (const PipelinePlan::Stage& stage : made.plan.stages) devices += stage.devices.size();
  EXPECT_EQ(devices, 4u);
  EXPECT_EQ(judge_pipeline(graph, made.plan, system, 1), "") << print(made.plan);
}

// Stages of two devices divide their values; each device holds its part.
TEST(Pipeline, DividesTheValuesOfAStage) {
  const Graph step = step_of("mlp", 8);
  const System system = ring(4);
  for (const int32_t batches : {1, 2, 4}) {
    const ChosenPipeline made = choose_pipeline(step, system, costs_of(system),
                                                {.stages = 2,
                                                 .micro_batches = batches,
                                                 .schedule = PipelineSchedule::one_forward,
                                                 .mesh = stage_mesh(2)})
                                    .value();
    ASSERT_EQ(made.plan.stages.size(), 2u);
    for (const PipelinePlan::Stage& stage : made.plan.stages) EXPECT_EQ(stage.devices.size(), 2u);
    EXPECT_EQ(judge_pipeline(step, made.plan, system, 1), "") << print(made.plan);
  }
}

// The stages of equal layers are divided alike, by one search.
TEST(Pipeline, SearchesEqualStagesOnce) {
  const Graph graph = parse_graph(R"(
graph @equal(%x: f32[8, 16], %u: f32[16, 16], %v: f32[16, 16], %w: f32[16, 16]) -> f32[8, 16] {
  %h0 = dot %x, %u {lhs_contract = [1], rhs_contract = [0]}
  %a0 = tanh %h0
  %h1 = dot %a0, %v {lhs_contract = [1], rhs_contract = [0]}
  %a1 = tanh %h1
  %h2 = dot %a1, %w {lhs_contract = [1], rhs_contract = [0]}
  %a2 = tanh %h2
  return %a2
})")
                          .value();
  const System system = fast_ring(2);
  const auto costs = costs_of(system);
  const BatchInputs rows = batch_inputs(graph, graph.input_types()).value();
  const StageSource source =
      StageSource::make(first_micro_batch(graph, rows, 2).value(), graph, system, costs, nullptr)
          .value();
  StageSharder sharder(system, costs, nullptr);
  for (const char number : {'1', '2'}) {
    std::vector<bool> is_inside;
    for (const NodeId n : source.graph.nodes())
      is_inside.push_back(source.parts[n.index] != LayerPart::leaf &&
                          source.graph.name(source.graph.result(n)).back() == number);
    const std::vector<ShardedStage> ways =
        sharder.ways(source, is_inside, stage_mesh(2), 0).value();
    ASSERT_FALSE(ways.empty());
    EXPECT_GT(ways[0].facts.forward, 0);
    EXPECT_TRUE(is_all_stated(ways[0].graph));
  }
  EXPECT_EQ(sharder.searched(), 1u);
}

// Products and functions one behind the other, some of which read an earlier value, too.
Graph random_layers(Rng& rng) {
  const int64_t rows = rng.between(4, 9);
  int64_t width = rng.between(3, 8);
  std::string text, inputs = fmt::format("%x: f32[{}, {}]", rows, width), last = "x", early = "x";
  const auto layers = static_cast<int>(rng.between(3, 6));
  for (int i = 0; i < layers; ++i) {
    const int64_t next = rng.below(3) == 0 ? width : rng.between(3, 8);
    inputs += fmt::format(", %w{}: f32[{}, {}]", i, width, next);
    text += fmt::format(
        "  %h{0} = dot %{1}, %w{0} {{lhs_contract = [1], rhs_contract = [0]}}\n"
        "  %a{0} = tanh %h{0}\n",
        i, last);
    last = fmt::format("a{}", i);
    if (next == width && rng.below(2) == 0) {
      text += fmt::format("  %r{} = add %{}, %{}\n", i, last, early);
      last = fmt::format("r{}", i);
    }
    early = last;
    width = next;
  }
  // Some give out their rows, too.
  const std::string made = fmt::format("f32[{}, {}]", rows, width);
  const std::string given = inputs.substr(4, inputs.find(']') - 3);
  const bool both = rng.below(3) == 0;
  text += fmt::format("  return %{}{}\n}}\n", last, both ? ", %x" : "");
  return parse_graph(fmt::format("graph @layers({}) -> {} {{\n{}", inputs,
                                 both ? fmt::format("({}, {})", made, given) : made, text))
      .value();
}

// Sizes need not divide, neither rows into micro-batches nor dims among devices.
void judge_random_layers(uint64_t first, uint64_t count) {
  const char* const meshes[] = {"x=2", "x=3", "x=2,y=2"};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Graph graph = random_layers(rng);
    const MeshRef mesh = parse_mesh(meshes[rng.below(std::size(meshes))]).value();
    const int64_t stages = rng.between(1, 3);
    const System system = fast_ring(stages * mesh->device_count());
    const Result<ChosenPipeline> made =
        choose_pipeline(graph, system, costs_of(system),
                        {.stages = static_cast<int32_t>(stages),
                         .micro_batches = static_cast<int32_t>(rng.between(1, 4)),
                         .batch = {"x"},
                         .mesh = mesh});
    ASSERT_TRUE(made.ok()) << seed << ": " << made.error().to_string();
    EXPECT_EQ(judge_pipeline(graph, made->plan, system, seed), "")
        << "seed " << seed << "\n"
        << print(graph) << print(made->plan);
  }
}

TEST(Pipeline, DividesRandomLayers) { judge_random_layers(0, 12); }
TEST(Pipeline, DISABLED_SweepOfDividedLayers) { judge_random_layers(100, 500); }

// No stage makes the rows that a graph takes and gives out; the first one joins them again.
TEST(Pipeline, GivesOutTheRowsThatItTakes) {
  const Graph graph = parse_graph(R"(
graph @outs(%x: f32[8, 16], %w: f32[16, 16]) -> (f32[8, 16], f32[8, 16], f32[16, 16]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y, %x, %w
})")
                          .value();
  for (const int64_t devices : {1, 2})
    for (const int32_t batches : {1, 2, 3}) {
      const System system = fast_ring(2 * devices);
      const Result<ChosenPipeline> made = choose_pipeline(
          graph, system, costs_of(system),
          {.stages = 2, .micro_batches = batches, .batch = {"x"}, .mesh = stage_mesh(devices)});
      ASSERT_TRUE(made.ok()) << made.error().to_string();
      EXPECT_EQ(judge_pipeline(graph, made->plan, system, 1), "") << print(made->plan);
    }
}

Type type_of(const Dims& dims) { return Type::make(DType::f32, dims).value(); }

// The graph's word about its values holds in the stages, whose mesh has its axes.
TEST(Pipeline, KeepsTheDivisionThatTheGraphSays) {
  const Graph graph = parse_graph(R"(
graph @own(%x: f32[8, 16], %v: f32[16, 16] on @m [x, -], %w: f32[16, 16]) -> f32[8, 16]
    mesh @m = [x = 2] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = tanh %h : f32[8, 16] on @m [x, -]
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y on @m [-, x]
})")
                          .value();
  const System system = ring(4);
  const auto chosen = [&](int32_t stages, std::string_view mesh) {
    return choose_pipeline(graph, system, costs_of(system),
                           {.stages = stages,
                            .micro_batches = 2,
                            .mesh = mesh.empty() ? nullptr : parse_mesh(mesh).value()});
  };
  for (const auto& [stages, mesh] :
       {std::pair(2, "x=2"), std::pair(2, ""), std::pair(1, "y=2,x=2")}) {
    const Result<ChosenPipeline> made = chosen(stages, mesh);
    ASSERT_TRUE(made.ok()) << mesh << made.error().to_string();
    const std::string text = print(made->plan);
    EXPECT_THAT(text, testing::HasSubstr("shard %v = [x, -]"));
    EXPECT_THAT(text, testing::HasSubstr("shard %a = [x, -]"));
    EXPECT_THAT(text, testing::HasSubstr("= [-, x]"));
    EXPECT_EQ(judge_pipeline(graph, made->plan, system, 1), "") << text;
  }
  EXPECT_THAT(chosen(2, "y=2"), refuses(ErrorCode::unsupported,
                                        "divides '...' as [...x...] along x = 2 ... [y = 2]"));
  EXPECT_THAT(chosen(1, "x=4"), refuses(ErrorCode::unsupported, "along x = 2 ... [x = 4]"));
  // A plan that leaves them open follows the graph, and none says otherwise.
  const auto planned = [&](std::string_view text) {
    return pipeline_programs(graph, parse_pipeline_plan(text, "p").value(), system,
                             costs_of(system));
  };
  const std::string open = "pipeline 2 micro-batches, gpipe\nstage on 0 1 = %h %a %y\nmesh x=2\n";
  const Result<PipelinePrograms> made = planned(open);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  for (const PipelinePart& part : made->inputs)
    if (part.whole == 1) {
      EXPECT_EQ(part.port.dims[0].size(), 1u);
    }
  EXPECT_THAT(planned(open + "shard %v = [-, x]\n"),
              refuses(ErrorCode::bad_input, "p:4 ... %v ... the graph says [x, -]"));
  EXPECT_THAT(planned("pipeline 1 micro-batches, gpipe\nstage on 0 = %h %a %y\n"),
              refuses(ErrorCode::unsupported, "along x = 2"));
}

// Two hosts of two devices. The way of least bytes lets parts change places, and half of them cross
// hosts. Within a host each device gets all parts in less time, and takes its own.
TEST(Pipeline, SendsWithinAStageAsItIsPriced) {
  const System system = system_of("tree:2x2");
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[64, 64]) -> f32[64, 64] {\n"
                          "  %y = tanh %x\n"
                          "  return %y\n"
                          "}\n")
                          .value();
  const PipelinePlan plan = parse_pipeline_plan(
                                "pipeline 1 micro-batches, gpipe\n"
                                "stage on 0 1 2 3 = %y\n"
                                "mesh hosts=2,in=2\n"
                                "shard %x = [in, -]\n"
                                "shard %y = [in, -]\n"
                                "output 0 = [hosts, -]\n",
                                "p")
                                .value();
  EXPECT_EQ(judge_pipeline(graph, plan, system, 1), "");
  const DevicePrograms programs =
      pipeline_programs(graph, plan, system, costs_of(system)).value().programs.programs;
  int sends = 0;
  for (int32_t device = 0; device < 4; ++device)
    for (const program::Command& command : programs.of(device).main->commands)
      if (const auto* send = std::get_if<program::Send>(&command.kind)) {
        EXPECT_EQ(send->message.peer / 2, device / 2);
        ++sends;
      }
  EXPECT_GT(sends, 0);
}

// The step of a transformer, whose stages have two devices each.
TEST(Pipeline, DividesTheStepOfATransformer) {
  const Graph step = step_of("gpt2", 4, "momentum");
  const System system = fast_ring(4);
  const Result<ChosenPipeline> made = choose_pipeline(
      step, system, costs_of(system), {.stages = 2, .micro_batches = 2, .mesh = stage_mesh(2)});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  bool divides = false;
  for (const PipelinePlan::Stage& stage : made->plan.stages)
    for (const ShardPlan::Line& line : stage.shards.lines)
      divides = divides || line.dims.find('x') != std::string::npos;
  EXPECT_TRUE(divides);
  EXPECT_EQ(judge_pipeline(step, made->plan, system, 1), "");
}

// The devices of a stage exchange nothing within a loop, whatever else they divide.
TEST(Pipeline, ExchangesNothingInALoop) {
  const Graph graph = parse_graph(R"(
graph @loop(%x: f32[8, 64], %w: f32[4, 64, 64], %v: f32[64, 64]) -> f32[8, 64] {
  %h = scan %x, %w {carried = 1} body (%a: f32[8, 64], %b: f32[64, 64]) {
    %d = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
    %t = tanh %d
    return %t
  } : f32[8, 64]
  %y = dot %h, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                          .value();
  const System system = fast_ring(2);
  const int64_t layer = 4 * 64 * 64 * 4;  // bytes of the loop's weights
  for (const int64_t memory : {int64_t{0}, layer + (int64_t{24} << 10)}) {
    const Result<ChosenPipeline> made = choose_pipeline(
        graph, system, costs_of(system),
        {.stages = 1, .micro_batches = 2, .batch = {"x"}, .mesh = stage_mesh(2), .memory = memory});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_EQ(judge_pipeline(graph, made->plan, system, 1), "") << print(made->plan);
  }
  const PipelinePlan inner = parse_pipeline_plan(
                                 "pipeline 1 micro-batches, gpipe\n"
                                 "stage on 0 1 = %h %y\n"
                                 "mesh x=2\n"
                                 "shard %h = [-, x]\n",
                                 "p")
                                 .value();
  EXPECT_THAT(pipeline_programs(graph, inner, system, costs_of(system)),
              refuses(ErrorCode::unsupported,
                      "stage 0 ... exchange data within node '%h' (scan) ... one device"));
}

// The second layer has most weights, and the optimizer keeps twice as much beside them: they need
// more than a device may have. So its stage divides them.
TEST(Pipeline, DividesALayerThatIsLargerThanADevice) {
  Graph wide("wide");
  Rng rng(1);
  ValueId last = wide.add_parameter(type_of({8, 16}), "x");
  const int64_t widths[] = {16, 32, 512, 4};
  for (size_t i = 0; i + 1 < std::size(widths); ++i) {
    std::vector<double> numbers(static_cast<size_t>(widths[i] * widths[i + 1]));
    for (double& number : numbers) number = rng.uniform() - 0.5;
    const ValueId weight = wide.add_constant(
        Tensor::from_reals(type_of({widths[i], widths[i + 1]}), numbers), fmt::format("w{}", i));
    const Op dot = Op::get(Opcode::dot, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}});
    last = wide.result(wide.append(dot, {{last, weight}}).value());
    if (i < 2) last = wide.result(wide.append(Op::get(Opcode::tanh), {{last}}).value());
  }
  wide.set_outputs({last});
  const Graph step =
      training_step(wide, {.optimizer = find_optimizer("adam").value()}).value().graph;
  int64_t memory = 0;
  const auto chosen = [&](int64_t devices, PipelineOptions options) {
    const System system = fast_ring(devices);
    options.micro_batches = 2;
    options.memory = memory;
    return choose_pipeline(step, system, costs_of(system), options);
  };
  memory = std::ranges::max(chosen(3, {.stages = 3}).value().times.memory) * 3 / 4;
  // Stages of one device are refused, as many as there are.
  EXPECT_THAT(chosen(3, {.stages = 3}), refuses(ErrorCode::limit, "no pipeline keeps a device"));
  const Result<ChosenPipeline> made = chosen(4, {});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(std::ranges::max(made->times.memory), memory);
  const System system = fast_ring(4);
  EXPECT_EQ(judge_pipeline(step, made->plan, system, 1), "") << print(made->plan);
  // No program needs more, with what it computes.
  const PipelinePrograms programs =
      pipeline_programs(step, made->plan, system, costs_of(system)).value();
  EXPECT_LE(std::ranges::max(totals(programs.memory().value())), memory);
}

TEST(Pipeline, RefusesMeshesThatDoNotFit) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny, .batch = 8}).value();
  const System system = ring(4);
  EXPECT_THAT(
      choose_pipeline(graph, system, costs_of(system), {.stages = 3, .mesh = stage_mesh(2)}),
      refuses(ErrorCode::usage, "3 stages of 2 devices ... 4"));
  const PipelinePlan plan =
      choose_pipeline(graph, system, costs_of(system), {.stages = 2, .mesh = stage_mesh(2)})
          .value()
          .plan;
  const auto refused = [&](std::string_view from, std::string_view to) -> Status {
    std::string text = print(plan);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    HONE_TRY(pipeline_programs(graph, HONE_TRY(parse_pipeline_plan(text, "p")), system,
                               costs_of(system)));
    return {};
  };
  EXPECT_THAT(refused("mesh x=2", "mesh x=4"),
              refuses(ErrorCode::bad_input, "p:2 ... 2 devices ... x=4 has 4"));
  EXPECT_THAT(refused("shard %", "shard %nobody"),
              refuses(ErrorCode::bad_input, "p:4 ... no value 'nobodyx"));
}

// Messages take a second: what one device computes alone needs none.
TEST(Pipeline, KeepsToOneDeviceWhereOthersTakeLonger) {
  const Graph step = step_of("mlp", 8, "sgd");
  System system = ring(2);
  for (Links& links : system.links) links.latency = 1;
  const ChosenPipeline made = choose_pipeline(step, system, costs_of(system), {}).value();
  ASSERT_EQ(made.plan.stages.size(), 1u);
  EXPECT_EQ(made.plan.devices(), 1);
  EXPECT_LT(made.times.seconds, 0.1);
  EXPECT_EQ(judge_pipeline(step, made.plan, system, 1), "") << print(made.plan);
  const ChosenPipeline two = choose_pipeline(step, system, costs_of(system), {.stages = 2}).value();
  EXPECT_EQ(two.plan.devices(), 2);
  EXPECT_GT(two.times.seconds, 1);
}

// Devices 0 and 4 are of two hosts, and what they add up between them goes through both switches.
TEST(Pipeline, PricesAStageByItsOwnDevices) {
  const Graph graph = parse_graph(R"(
graph @sum(%x: f32[64, 32], %w: f32[32, 64]) -> f32[64, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})")
                          .value();
  const System system = system_of("tree:2x4");
  const auto seconds = [&](std::string_view devices) {
    const PipelinePlan plan = parse_pipeline_plan(fmt::format("pipeline 1 micro-batches, gpipe\n"
                                                              "stage on {} = %h %y\n"
                                                              "mesh x=2\n"
                                                              "shard %x = [-, x]\n"
                                                              "shard %w = [x, -]\n"
                                                              "shard %h = [x, -]\n",
                                                              devices),
                                                  "p")
                                  .value();
    return judged_pipeline(graph, plan, system, costs_of(system)).value().times.seconds;
  };
  EXPECT_GT(seconds("0 4"), 1.01 * seconds("0 1"));
  EXPECT_DOUBLE_EQ(seconds("2 3"), seconds("0 1"));
  EXPECT_DOUBLE_EQ(seconds("3 4"), seconds("0 4"));
}

// Half of the devices are a second away, so they do nothing.
TEST(Pipeline, TakesAsManyDevicesAsAreBest) {
  const Graph graph = parse_graph(R"(
graph @total(%x: f32[96, 768], %w: f32[768, 768]) -> f32[] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %s = reduce %y {kind = sum, axes = [0, 1]}
  return %s
})")
                          .value();
  System system = system_of("tree:2x2");
  for (Links& links : system.links) links.latency = links.over == kAllDevices ? 1 : 1e-9;
  const ChosenPipeline made =
      choose_pipeline(graph, system, costs_of(system), {.micro_batches = 1}).value();
  EXPECT_EQ(made.plan.devices(), 2);
  EXPECT_LT(made.times.seconds, 0.8 * made.one_device);
}

// Three devices are no power of two, and one layer is one stage: all of them divide it.
TEST(Pipeline, TakesAsManyDevicesAsThereAre) {
  const Graph graph = parse_graph(R"(
graph @wide(%x: f32[96, 768], %w: f32[768, 768]) -> f32[96, 768] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                          .value();
  for (const int32_t devices : {3, 6}) {
    const System system = fast_ring(devices);
    const ChosenPipeline made =
        choose_pipeline(graph, system, costs_of(system), {.micro_batches = 1}).value();
    EXPECT_EQ(made.plan.devices(), devices);
    EXPECT_LT(made.times.seconds, 0.6 * made.one_device);
  }
}

// A plan works out as it did where it was chosen.
TEST(Pipeline, JudgesAPlanAsItWasChosen) {
  const Graph step = step_of("mlp", 8);
  const System system = fast_ring(2);
  const PipelineOptions options = {
      .stages = 2, .micro_batches = 4, .schedule = PipelineSchedule::one_forward};
  const ChosenPipeline chosen = choose_pipeline(step, system, costs_of(system), options).value();
  const JudgedPipeline judged =
      judged_pipeline(step, chosen.plan, system, costs_of(system)).value();
  EXPECT_NEAR(judged.times.seconds, chosen.times.seconds, 1e-3 * chosen.times.seconds);
  EXPECT_NEAR(judged.one_device, chosen.one_device, 1e-9);
  ASSERT_EQ(judged.stages.size(), 2u);
  for (const StageFacts& stage : judged.stages) {
    EXPECT_GT(stage.forward, 0);
    EXPECT_GT(stage.backward, 0);
    EXPECT_GT(stage.held, 0);
  }
  EXPECT_GT(judged.stages[1].received_forward, 0);
  EXPECT_GT(judged.stages[0].received_backward, 0);
  // The last device goes back at once, the first one when it has one micro-batch more.
  ASSERT_EQ(judged.orders.size(), 2u);
  EXPECT_EQ(judged.orders[1][1].kind, PipelineTask::Kind::backward);
  EXPECT_EQ(judged.orders[0][1].kind, PipelineTask::Kind::forward);
  ASSERT_EQ(judged.others.size(), 2u);
  EXPECT_EQ(judged.others[0].schedule, PipelineSchedule::gpipe);
  EXPECT_GE(std::ranges::max(judged.others[0].times.memory), std::ranges::max(judged.times.memory));
}

// A plan that cannot run has no times.
TEST(Pipeline, JudgesNoStagesThatWaitForEachOther) {
  const Graph step = parse_graph(R"(
graph @chain(%x: f32[8, 4]) -> f32[8, 4] {
  %a = exp %x
  %b = tanh %a
  %y = sin %b
  return %y
})")
                         .value();
  const System system = ring(2);
  const PipelinePlan plan = parse_pipeline_plan(
                                "pipeline 2 micro-batches, gpipe\n"
                                "stage on 0 = %a %y\n"
                                "stage on 1 = %b\n",
                                "p")
                                .value();
  const auto waits = refuses(ErrorCode::bad_input, "waits for a stage that waits for it");
  EXPECT_THAT(pipeline_programs(step, plan, system, costs_of(system)), waits);
  EXPECT_THAT(judged_pipeline(step, plan, system, costs_of(system)), waits);
}

TEST(Pipeline, HasNoStagesOfABatchOfNothing) {
  const Graph graph = parse_graph(
                          "graph @z(%x: f32[0, 16], %w: f32[16, 16]) -> f32[0, 16] {\n"
                          "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
                          "  return %h\n"
                          "}\n")
                          .value();
  const System system = ring(2);
  EXPECT_THAT(choose_pipeline(graph, system, costs_of(system), {.stages = 2}),
              refuses(ErrorCode::usage, "a batch of 0 rows"));
}

TEST(Pipeline, CountsOneStageAndOneMicroBatch) {
  const PipelinePlan plan =
      parse_pipeline_plan("pipeline 1 micro-batches, gpipe\nstage on 0 = %y\n", "p").value();
  EXPECT_EQ(stages_of(plan), "1 stage");
  EXPECT_EQ(turns_of(plan), "1 micro-batch, gpipe");
}

// The plan comes back as it was printed, and edits are checked.
TEST(Pipeline, PlansAreText) {
  const Graph step = step_of("mlp", 8);
  const System system = ring(2);
  const PipelinePlan plan =
      choose_pipeline(step, system, costs_of(system), {.stages = 2, .micro_batches = 2})
          .value()
          .plan;
  const PipelinePlan again = parse_pipeline_plan(print(plan), "p").value();
  EXPECT_EQ(print(again), print(plan));
  const auto refused = [&](std::string_view from, std::string_view to) -> Status {
    std::string text = print(plan);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    HONE_TRY(pipeline_programs(step, HONE_TRY(parse_pipeline_plan(text, "p")), system,
                               costs_of(system)));
    return {};
  };
  EXPECT_THAT(refused("pipeline 2", "pipeline 0"), refuses(ErrorCode::limit, "p:1"));
  EXPECT_THAT(refused("stage on 1", "stage on 0"),
              refuses(ErrorCode::unsupported, "p ... several stages"));
  EXPECT_THAT(refused("pipeline 2 micro-batches", "pipeline 2"),
              refuses(ErrorCode::bad_input, "no pipeline"));
  EXPECT_THAT(refused("stage on 1", "stage on 7"),
              refuses(ErrorCode::bad_input, "p:3 ... no device 7 ... 2"));
  EXPECT_THAT(refused("stage on 1", "stage on 1 1"), refuses(ErrorCode::bad_input, "twice"));
  EXPECT_THAT(refused("stage on 1 = ", "stage on 1 = %nobody "),
              refuses(ErrorCode::bad_input, "p:3 ... 'nobody' ... another batch"));
  EXPECT_THAT(refused("stage on 1 = ", "stage on 1 = nobody "),
              refuses(ErrorCode::bad_input, "p:3 ... 'nobody' is no node"));
  EXPECT_THAT(refused("stage on 1", "phase on 1"), refuses(ErrorCode::bad_input, "no decision"));
  EXPECT_THAT(parse_pipeline_plan("", "p"), refuses(ErrorCode::bad_input, "no stage"));
  EXPECT_THAT(parse_pipeline_plan("stage on 0 = %x", "p"),
              refuses(ErrorCode::bad_input, "first line"));
}

TEST(Pipeline, KeepsWithinTheMemoryOfADevice) {
  const Graph step = step_of("mlp", 8);
  const System system = ring(2);
  const auto chosen = [&](int64_t memory) {
    return choose_pipeline(step, system, costs_of(system),
                           {.stages = 2, .micro_batches = 4, .memory = memory});
  };
  const int64_t most = std::ranges::max(chosen(0).value().times.memory);
  EXPECT_LE(std::ranges::max(chosen(most).value().times.memory), most);
  EXPECT_THAT(chosen(16), refuses(ErrorCode::limit, "16 B"));
}

// A stage has values of its own beside what it is given: here the whole weight, twice.
TEST(Pipeline, CountsWhatAStageComputesWith) {
  const Graph graph = parse_graph(R"(
graph @wide(%x: f32[4, 256], %w: f32[256, 256]) -> f32[4, 256] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %e = exp %w
  %f = dot %h, %e {lhs_contract = [1], rhs_contract = [0]}
  %s = sort %w {axis = 0}
  %g = dot %f, %s {lhs_contract = [1], rhs_contract = [0]}
  return %g
})")
                          .value();
  const System system = fast_ring(4);
  const auto chosen = [&](int64_t memory) {
    return choose_pipeline(graph, system, costs_of(system),
                           {.stages = 1, .batch = {"x"}, .mesh = stage_mesh(4), .memory = memory});
  };
  // It suffices for the parts that devices are given.
  EXPECT_THAT(chosen(70 << 10),
              refuses(ErrorCode::limit, "70.0 KiB ... too much; its largest are ... KiB"));
  for (const int64_t memory : {int64_t{0}, int64_t{256} << 10}) {
    const Result<ChosenPipeline> made = chosen(memory);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    const PipelinePrograms programs =
        pipeline_programs(graph, made->plan, system, costs_of(system)).value();
    EXPECT_EQ(made->times.memory, totals(programs.memory().value()));
    if (memory > 0) {
      EXPECT_LE(std::ranges::max(made->times.memory), memory);
    }
    EXPECT_EQ(judge_pipeline(graph, made->plan, system, 1), "");
    EXPECT_EQ(judged_pipeline(graph, made->plan, system, costs_of(system)).value().times.memory,
              made->times.memory);
  }
}

// Each stage anywhere: whatever nodes a plan puts where, the result stays or the plan is refused.
int judge_random_stages(uint64_t first, uint64_t count) {
  constexpr int32_t kCounts[] = {1, 2, 3, 6};
  int right = 0;
  const Graph steps[] = {step_of("mlp", 6, "momentum"), step_of("mlp", 12, "sgd")};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Graph& step = steps[rng.below(std::size(steps))];
    const auto devices = rng.between(2, 4);
    const System system = ring(devices);
    PipelineOptions options = {.micro_batches = rng.pick(kCounts)};
    Result<ChosenPipeline> made = choose_pipeline(step, system, costs_of(system), options);
    if (!made.ok()) {
      ADD_FAILURE() << seed << ": " << made.error().to_string();
      continue;
    }
    PipelinePlan plan = made->plan;
    // Some nodes move to another stage.
    for (int64_t moves = rng.between(0, 3); moves > 0 && plan.stages.size() > 1; --moves) {
      auto& from = plan.stages[rng.below(plan.stages.size())].nodes;
      if (from.empty()) continue;
      const size_t node = rng.below(from.size());
      plan.stages[rng.below(plan.stages.size())].nodes.push_back(from[node]);
      auto& all = from;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(node));
      // Values of stages change, too: prices divide them anew.
      for (PipelinePlan::Stage& stage : plan.stages) stage.shards.lines.clear();
    }
    const std::string text = judge_pipeline(step, plan, system, seed);
    if (text.find("waits for a stage that waits for it") != std::string::npos) continue;
    EXPECT_EQ(text, "") << "seed " << seed << "\n" << print(plan);
    ++right;
  }
  return right;
}

TEST(Pipeline, RandomStagesTrainAsOneDeviceDoes) { EXPECT_GT(judge_random_stages(0, 8), 3); }
TEST(Pipeline, DISABLED_SweepOfRandomStages) { judge_random_stages(100, 1000); }

}  // namespace
}  // namespace hone::HONE_FILE
