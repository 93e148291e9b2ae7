#include "search/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "learn/training_step.h"
#include "program/devices.h"
#include "program/frame.h"
#include "search/pipeline_layers.h"
#include "search/pipeline_stages.h"
#include "session/program_text.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/lower_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// ---- Stages -------------------------------------------------------------------------------------

LayerChain random_chain(Rng& rng, int layers) {
  LayerChain chain;
  for (int i = 0; i < layers; ++i) {
    chain.seconds.push_back(static_cast<double>(rng.between(1, 9)));
    chain.crossing.push_back(i == 0 ? 0 : static_cast<double>(rng.between(0, 3)));
    chain.sharing.push_back(static_cast<double>(rng.between(0, 2)));
  }
  return chain;
}

// All ways to divide the layers and the devices.
double best_by_trying(const LayerChain& chain, int devices, int micro_batches, int stages) {
  double best = INFINITY;
  const auto layers = static_cast<int>(chain.seconds.size());
  std::vector<LayerStage> chosen;
  const std::function<void(int, int)> go = [&](int first, int left) {
    if (std::ssize(chosen) == stages) {
      if (first == layers && left == 0)
        best = std::min(best, step_seconds(chain, chosen, micro_batches));
      return;
    }
    for (int end = first + 1; end <= layers; ++end)
      for (int n = 1; n <= left && n <= micro_batches; n *= 2) {
        chosen.push_back({first, end, n});
        go(end, left - n);
        chosen.pop_back();
      }
  };
  go(0, devices);
  return best;
}

TEST(PipelineStages, AreTheBestOfAll) {
  Rng rng(3);
  for (int i = 0; i < 60; ++i) {
    const auto layers = static_cast<int>(rng.between(1, 6));
    const auto devices = static_cast<int>(rng.between(1, 5));
    const auto batches = static_cast<int>(rng.between(1, 8));
    const LayerChain chain = random_chain(rng, layers);
    for (int stages = 1; stages <= std::min(layers, devices); ++stages) {
      const std::vector<StageChoice> made = best_stages(chain, devices, batches, stages);
      const double want = best_by_trying(chain, devices, batches, stages);
      ASSERT_EQ(made.empty(), std::isinf(want)) << i << " " << stages;
      if (!made.empty()) EXPECT_NEAR(made[0].seconds, want, 1e-9) << i << " " << stages;
    }
  }
}

TEST(PipelineStages, LayersCutWhereFewBytesCross) {
  // Items 0 1 | 2 3: little crosses in the middle.
  std::vector<std::vector<double>> received(5, std::vector<double>(6, 100));
  for (auto& row : received[0]) row = 0;
  received[2] = {1, 1, 1, 1, 1, 1};
  EXPECT_THAT(clustered({1, 1, 1, 1}, received, 2), testing::ElementsAre(2, 4));
  EXPECT_THAT(clustered({1}, {{0, 0, 0}, {0, 0, 0}}, 3), testing::ElementsAre(1));
}

// ---- Schedules ----------------------------------------------------------------------------------

System ring(int64_t devices) {
  Target target = two_cores();
  for (CacheLevel& cache : target.caches) cache.cores = std::min(cache.cores, target.cores);
  return preset_system(fmt::format("ring:{}", devices), target).value();
}

System fast_ring(int64_t devices) {
  System system = ring(devices);
  for (Links& links : system.links) {
    links.bytes_per_second = 1e15;
    links.latency = 0;
  }
  return system;
}

PipelineShape shape_of(int32_t devices, int32_t stages, int32_t batches) {
  PipelineShape shape = {.micro_batches = batches};
  for (int32_t s = 0; s < stages; ++s) shape.devices_of.push_back({s % devices});
  return shape;
}

// There are p stages and m micro-batches, forward 1 s and backward 2 s. A device idles for as long
// as p - 1 micro-batches take, or half of that if it has two stages.
TEST(PipelineSchedules, IdleAsTheFormulasSay) {
  for (const int32_t p : {2, 3, 4})
    for (const int32_t m : {p, 2 * p, 4 * p}) {
      const std::vector<StageFacts> stages(static_cast<size_t>(p),
                                           {.forward = 1, .backward = 2, .kept = 10});
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward}) {
        const PipelineTimes times =
            simulate_pipeline(shape_of(p, p, m), schedule, stages, fast_ring(p)).value();
        EXPECT_NEAR(times.seconds, 3.0 * (m + p - 1), 1e-6) << name(schedule) << p << " " << m;
        for (int32_t i = 0; i < p; ++i)
          EXPECT_EQ(times.memory[static_cast<size_t>(i)],
                    10 * (schedule == PipelineSchedule::gpipe ? m : std::min(m, p - i)))
              << name(schedule) << " " << p << " " << m << " " << i;
      }
      const std::vector<StageFacts> halves(static_cast<size_t>(2 * p),
                                           {.forward = 0.5, .backward = 1, .kept = 5});
      const PipelineTimes times =
          simulate_pipeline(shape_of(p, 2 * p, m), PipelineSchedule::interleaved, halves,
                            fast_ring(p))
              .value();
      EXPECT_NEAR(times.seconds, 3.0 * m + 3.0 * (p - 1) / 2, 1e-6) << p << " " << m;
    }
}

TEST(PipelineSchedules, RefuseWhatDoesNotInterleave) {
  const std::vector<StageFacts> stages(4);
  EXPECT_THAT(
      simulate_pipeline(shape_of(2, 4, 3), PipelineSchedule::interleaved, stages, fast_ring(2)),
      refuses(ErrorCode::unsupported, "3 micro-batches do not interleave"));
  EXPECT_THAT(simulate_pipeline(shape_of(2, 4, 4), PipelineSchedule::gpipe, stages, fast_ring(2)),
              refuses(ErrorCode::unsupported, "several stages"));
}

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
                inputs_of_devices(made->graph, made->programs.programs, inputs), int64_t{1} << 30);
  if (!parts.ok()) return parts.error().to_string();
  return tested::difference(outputs_of_graph(made->programs, *parts), *want, 2e-3);
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
  EXPECT_GT(judged.stages[0].sent_forward, 0);
  EXPECT_GT(judged.stages[1].sent_backward, 0);
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
  EXPECT_THAT(refused("pipeline 2 micro-batches", "pipeline 2"),
              refuses(ErrorCode::bad_input, "no pipeline"));
  EXPECT_THAT(refused("stage on 1", "stage on 7"),
              refuses(ErrorCode::bad_input, "p:3 ... no device 7 ... 2"));
  EXPECT_THAT(refused("stage on 1", "stage on 1 1"), refuses(ErrorCode::bad_input, "twice"));
  EXPECT_THAT(refused("stage on 1 = ", "stage on 1 = %nobody "),
              refuses(ErrorCode::bad_input, "p:3 ... 'nobody'"));
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
