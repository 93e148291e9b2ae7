#include "compile/batch_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "compile/native_model.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/batch_inputs.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// Native code on several devices: beside the reference of the whole graph, and one device.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

std::vector<std::string> names(int64_t devices) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < devices; ++i) all.push_back(fmt::format("cpu {}", i));
  return all;
}

BatchModel divided(Graph graph, int64_t devices, std::vector<std::string> inputs = {},
                   CompileOptions options = {}) {
  return BatchModel(std::move(graph), host_target().value(), std::move(options),
                    {.devices = names(devices), .inputs = std::move(inputs)});
}

Graph parsed(std::string_view text) { return parse_graph(text).value(); }

// Reals within 1e-4 of the largest, all else alike.
void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].type(), expected[i].type());
    double scale = 1e-6;
    for (int64_t e = 0; e < actual[i].elements(); ++e)
      scale = std::max(scale, std::abs(expected[i].real_at(e)));
    for (int64_t e = 0; e < actual[i].elements(); ++e)
      ASSERT_NEAR(actual[i].real_at(e), expected[i].real_at(e), scale * 1e-4) << i << " " << e;
  }
}

// A GPU and a core: the one that takes the batch sooner has more of it.
TEST(BatchModel, SharesFollowThePricesOfDevices) {
  const Graph graph = parsed(
      "graph @g(%x: f32[256, 2048], %w: f32[2048, 2048]) { %y = dot %x, %w {lhs_contract = [1], "
      "rhs_contract = [0]} return %y }");
  const std::vector<std::string> batch = {"x"};
  const BatchInputs rows = batch_inputs(graph, graph.input_types(), batch).value();
  const auto gpu = std::make_shared<const GpuPart>(GpuPart{.target = *preset_gpu("sm_90")});
  CompileOptions options;
  options.plan.threads = 1;
  const auto counts = [&](const GpuParts& gpus) {
    std::vector<int64_t> all;
    for (const BatchShare& share :
         shares_by_speed(graph, rows, std::ssize(gpus), host_target().value(), options, gpus))
      all.push_back(share.count);
    return all;
  };
  const std::vector<int64_t> first = counts({gpu, nullptr}), last = counts({nullptr, gpu});
  EXPECT_GT(first[0], 200);
  EXPECT_EQ(last, (std::vector<int64_t>{first[1], first[0]}));
  EXPECT_EQ(counts({gpu, gpu}), (std::vector<int64_t>{128, 128}));
  EXPECT_EQ(counts({nullptr, nullptr}), (std::vector<int64_t>{128, 128}));
  options.plan.order = {"none"};
  EXPECT_EQ(counts({gpu, nullptr}), (std::vector<int64_t>{128, 128})) << "there are no prices";
}

// A sum of neighbours takes a GPU no time beside the way of its numbers there and back.
TEST(BatchModel, SharesCountTheWayToAGpu) {
  const Graph graph =
      parsed("graph @g(%x: f32[4096, 1024]) -> f32[4096, 1024] { %y = add %x, %x return %y }");
  const BatchInputs rows = batch_inputs(graph, graph.input_types()).value();
  const auto gpu = std::make_shared<const GpuPart>(GpuPart{.target = *preset_gpu("sm_90")});
  CompileOptions options;
  options.plan.threads = 1;
  const std::vector<BatchShare> shares =
      shares_by_speed(graph, rows, 2, host_target().value(), options, {gpu, nullptr});
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_LT(shares[0].count, 3500);
  EXPECT_GT(shares[1].count, 500);
}

constexpr std::string_view kMixed = R"(
graph @mixed(%x: f32[N, 3, 4], %w: f32[4, 5]) where N in 0..64 {
  %h = dot %x, %w {lhs_contract = [2], rhs_contract = [0]} : f32[N, 3, 5]
  %y = tanh %h : f32[N, 3, 5]
  %t = transpose %x {permutation = [1, 0, 2]} : f32[3, N, 4]
  %s = reduce %w {kind = sum, axes = [1]} : f32[4]
  %i = iota {dtype = i64, dims = [N], axis = 0} : i64[N]
  %m = reduce %x {kind = max, axes = [1, 2]} : f32[N]
  %k = cast %m {dtype = i64} : i64[N]
  %j = sub %i, %k : i64[N]
  return %y, %t, %s, %j
}
)";

TEST(BatchModel, ComputesTheSameOnAnyNumberOfDevices) {
  const Graph graph = parsed(kMixed);
  const BatchModel models[] = {divided(graph, 1), divided(graph, 2), divided(graph, 5)};
  for (int64_t rows : {7, 2, 1, 0})
    for (const BatchModel& model : models) {
      const std::vector<Tensor> inputs =
          random_inputs(graph, static_cast<uint64_t>(rows), {{"N", Dim(rows)}}).value();
      const auto outputs = model.run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
      expect_near(*outputs, evaluate(graph, inputs).value());
    }
}

TEST(BatchModel, DividesBitsThatShareBytes) {
  const Graph graph = parsed(R"(
graph @nibbles(%x: u4[5, 3]) -> (u4[5, 3], u4[3, 5]) {
  %y = transpose %x {permutation = [1, 0]} : u4[3, 5]
  return %x, %y
}
)");
  const std::vector<int64_t> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Tensor inputs[] = {Tensor::from_integers(Type::get(DType::u4, {5, 3}), numbers)};
  const auto outputs = divided(graph, 3).run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  const std::vector<Tensor> expected = evaluate(graph, inputs).value();
  EXPECT_TRUE((*outputs)[0].same_bytes(expected[0]));
  EXPECT_TRUE((*outputs)[1].same_bytes(expected[1]));
}

TEST(BatchModel, CompilesOnceForEachNumberOfRows) {
  int images = 0;
  CompileOptions options;
  options.observer = [&](CompileStage stage, double) { images += stage == CompileStage::image; };
  const Graph graph = parsed(
      "graph @double(%x: f32[N, 2]) -> f32[N, 2] where N in 1..64 { %y = add %x, %x return %y }");
  const BatchModel model = divided(graph, 5, {}, options);
  const Type seven = Type::get(DType::f32, {7, 2}), five = Type::get(DType::f32, {5, 2});
  const auto devices = model.devices_for({&seven, 1}).value();
  EXPECT_EQ(devices->devices().size(), 5U);
  EXPECT_EQ(images, 2);  // of two rows, and of one
  EXPECT_EQ(model.devices_for({&seven, 1}).value(), devices);
  EXPECT_EQ(images, 2);
  EXPECT_NE(model.devices_for({&five, 1}).value(), devices);
}

TEST(BatchModel, TellsWhatEachDeviceTook) {
  const Graph graph = parsed(kMixed);
  const std::vector<Tensor> inputs = random_inputs(graph, 1, {{"N", Dim(5)}}).value();
  const BatchModel model = divided(graph, 2);
  const auto devices = model.devices_for(types_of(inputs)).value();
  std::vector<DeviceTimes> times(2);
  ASSERT_TRUE(devices->run(inputs, {}, std::span(times)).ok());
  for (const DeviceTimes& one : times) {
    EXPECT_GT(one.computing, 0);
    EXPECT_GT(one.moving, 0);  // the rows of an output lie along dim 1
    EXPECT_GE(one.waiting, 0);
  }
}

TEST(BatchModel, RunsForSeveralThreadsAtOnce) {
  const Graph graph = parsed(kMixed);
  const BatchModel model = divided(graph, 3);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      const std::vector<Tensor> inputs = random_inputs(graph, seed, {{"N", Dim(6)}}).value();
      for (int i = 0; i < 20; ++i)
        expect_near(model.run(inputs).value(), evaluate(graph, inputs).value());
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(BatchModel, NamesTheDeviceThatFails) {
  const Graph graph = parsed(R"(
graph @large(%x: f32[4, 256, 256]) {
  %y = dot %x, %x {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  %z = dot %y, %y {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %z
}
)");
  CompileOptions options;
  options.memory_limit = 4096;
  const BatchModel model = divided(graph, 2, {}, options);
  EXPECT_THAT(model.run(random_inputs(graph, 1).value()),
              refuses(ErrorCode::limit, "device 'cpu ..."));
}

TEST(BatchModel, EndsWhenItIsCancelled) {
  const Graph graph = parsed(kMixed);
  const std::vector<Tensor> inputs = random_inputs(graph, 1, {{"N", Dim(5)}}).value();
  CancelToken cancel;
  cancel.cancel();
  EXPECT_THAT(divided(graph, 2).run(inputs, {.cancel = &cancel}),
              refuses(ErrorCode::interrupted, "stopped"));
}

TEST(BatchModel, RefusesWhatDoesNotFit) {
  const BatchModel model = divided(parsed(kMixed), 2);
  EXPECT_THAT(model.run({}), refuses(ErrorCode::bad_input, "takes 2 inputs"));
  const Graph most = parsed(
      "graph @most(%x: f32[4, 2]) -> f32[2] { %y = reduce %x {kind = max, axes = [0]} return %y }");
  EXPECT_THAT(divided(most, 2).run(random_inputs(most, 1).value()),
              refuses(ErrorCode::unsupported, "y ... reduce ... mixes"));
  EXPECT_TRUE(divided(most, 1).run(random_inputs(most, 1).value()).ok());
  EXPECT_TRUE(divided(most, 2, {"x:1"}).run(random_inputs(most, 1).value()).ok());
}

// The same structures as the published models, thin and shallow.
TEST(BatchModel, RunsModelsOfTheZooAsOneDeviceDoes) {
  const std::pair<std::string_view, std::vector<std::string>> models[] = {
      {"mlp", {}}, {"resnet18", {}}, {"bert_base", {}}, {"lstm", {"tokens:1"}}};
  uint64_t number = 0;
  for (const auto& [name, batch] : models) {
    if (!tested::in_share(number++, 4)) continue;
    const Graph graph = build_zoo_model(name, {.size = ZooSize::tiny, .batch = 3}).value();
    const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
    const auto one = NativeModel::make(model_of(graph), host_target().value()).value();
    const std::vector<Tensor> expected = one->run(inputs).value();
    for (int64_t devices : {2, 4}) {
      const auto outputs = divided(graph, devices, batch).run(inputs);
      ASSERT_TRUE(outputs.ok()) << name << ": " << outputs.error().to_string();
      expect_near(*outputs, expected);
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
