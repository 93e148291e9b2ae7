#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "compile/batch_model.h"
#include "compile/divided_code.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/inputs.h"

// Devices that add up what each of them has, as native code.

namespace hone::HONE_FILE {
namespace {

using tested::difference;
using tested::refuses;

std::vector<std::string> names(int64_t devices) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < devices; ++i) all.push_back(fmt::format("cpu {}", i));
  return all;
}

BatchModel divided(Graph graph, int64_t devices, CompileOptions options = {}) {
  return BatchModel(std::move(graph), host_target().value(), std::move(options),
                    {.devices = names(devices), .inputs = {}});
}

// Layers with sums over the batch between them: as they are in training.
class RandomSums {
 public:
  explicit RandomSums(uint64_t seed) : rng_(seed), rows_(rng_.between(2, 7)) {}

  Graph graph() {
    Value x = b_.parameter("x", DType::f32, {rows_, 3, 5});
    std::vector<Value> outputs;
    const int64_t steps = rng_.between(2, 5);
    for (int64_t i = 0; i < steps; ++i) {
      x = layer(x);
      if (rng_.chance(0.4)) outputs.push_back(gradient(x));
    }
    outputs.push_back(x);
    outputs.push_back(reduce_mean(x, {0, 1, 2}));
    return b_.finish(outputs).value();
  }

 private:
  Value weights(const Dims& dims) {
    const Type type = Type::get(DType::f32, dims);
    std::vector<double> values;
    for (int64_t i = 0; i < type.static_elements(); ++i) values.push_back(rng_.uniform(-1, 1));
    return b_.constant(Tensor::from_reals(type, values));
  }

  Value gradient(Value x) {
    switch (rng_.between(0, 3)) {
      case 0: return dot_general(x, x, {}, {}, {0, 1}, {0, 1});
      case 1: return reduce_sum(x, {0});
      case 2: return transpose(reduce_sum(x, {0}), {1, 0}) + weights({5, 3});
      default: return cast(reduce_sum(cast(x / 16, DType::f16), {0, 1}), DType::f32);
    }
  }

  Value layer(Value x) {
    using Values = std::vector<Value>;
    using In = std::span<const Value>;
    switch (rng_.between(0, 6)) {
      case 0: return tanh(matmul(x, weights({5, 5})));
      case 1: {
        const Value centered = x - reduce_mean(x, {0, 1}, true);
        return centered / sqrt(reduce_mean(centered * centered, {0, 1}, true) + 0.1);
      }
      case 2: return x + tanh(reduce_sum(x, {0}, true));
      case 3: {  // in each step of a loop
        const Value steps = transpose(x, {1, 0, 2});
        const auto body = [](Builder&, std::span<const Value> in) -> std::vector<Value> {
          const Value next = tanh(in[0] + reduce_sum(in[1], {0}));
          return {next, in[1] * next};
        };
        return transpose(scan({{b_.full(DType::f32, {5}, 0)}}, {{steps}}, body)[1], {1, 0, 2});
      }
      case 4: {  // where data decides what runs
        const auto centered = [](Builder&, In in) -> Values {
          return {in[0] - reduce_mean(in[0], {0}, true)};
        };
        const auto other = [](Builder&, In in) -> Values { return {tanh(in[0])}; };
        return if_else(compare("gt", reduce_mean(x, {0, 1, 2}), 0.05), {{x}}, centered, other)[0];
      }
      case 5: {  // in a few rounds, which data ends
        const auto goes_on = [](Builder&, In in) -> Values { return {compare("lt", in[1], 3)}; };
        const auto round = [](Builder&, In in) -> Values {
          return {tanh(in[0]), in[1] + reduce_mean(in[0] * in[0], {0, 1, 2}) + 0.5};
        };
        return while_loop({{x, b_.full(DType::f32, {}, 0)}}, goes_on, round)[0];
      }
      default: return softmax(x, 2) * x;
    }
  }

  Rng rng_;
  const int64_t rows_;
  Builder b_ = Builder("sums");
};

void run_random(uint64_t begin, uint64_t end) {
  for (uint64_t seed = begin; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomSums(seed).graph();
    const std::vector<Tensor> inputs = random_inputs(graph, seed).value();
    const std::vector<Tensor> expected = evaluate(graph, inputs).value();
    const BatchModel model = divided(graph, static_cast<int64_t>(seed % 3 + 2));
    std::vector<Tensor> first;
    for (int run = 0; run < 3; ++run) {
      const auto outputs = model.run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().to_string() << print(graph);
      ASSERT_EQ(difference(*outputs, expected, 2e-3), "") << print(graph);
      if (run == 0) first = *outputs;
      ASSERT_EQ(difference(*outputs, first, 0), "");  // the same bits at any timing
    }
  }
}

TEST(BatchSums, RandomGraphsComputeTheSameAsOneDevice) { run_random(0, 5); }
TEST(BatchSums, DISABLED_SweepRandomGraphs) { run_random(12, 400); }

constexpr std::string_view kTwo = R"(
graph @two(%x: f32[N, 4], %w: f32[4, 4]) -> (f32[4], f32[4, 4], f32[N, 4]) where N in 1..64 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  %s = reduce %y {kind = sum, axes = [0]}
  %g = dot %x, %y {lhs_contract = [0], rhs_contract = [0]}
  return %s, %g, %y
}
)";

Graph two() { return parse_graph(kTwo).value(); }

TEST(BatchSums, RunForSeveralThreadsAtOnce) {
  const BatchModel model = divided(two(), 3);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      const std::vector<Tensor> inputs = random_inputs(two(), seed, {{"N", Dim(7)}}).value();
      const std::vector<Tensor> expected = evaluate(two(), inputs).value();
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(difference(model.run(inputs).value(), expected, 1e-5), "");
    });
  for (std::thread& thread : threads) thread.join();
}

// A device that waits for a sum does not wait for one that has failed, and later runs are right.
TEST(BatchSums, AFailureEndsAllDevices) {
  const BatchModel model = divided(two(), 2);
  const std::vector<Tensor> inputs = random_inputs(two(), 1, {{"N", Dim(5)}}).value();
  CancelToken cancel;
  std::thread stopper([&] { cancel.cancel(); });
  for (int i = 0; i < 200; ++i) {
    const auto outputs = model.run(inputs, {.cancel = &cancel});
    if (!outputs.ok()) EXPECT_THAT(outputs, refuses(ErrorCode::interrupted, "stopped"));
  }
  stopper.join();
  const std::vector<Tensor> expected = evaluate(two(), inputs).value();
  EXPECT_EQ(difference(model.run(inputs).value(), expected, 1e-5), "");

  CompileOptions options;
  options.memory_limit = 64;
  EXPECT_THAT(divided(two(), 2, options).run(inputs), refuses(ErrorCode::limit, "device 'cpu ..."));
}

// Graphs of 3 and of 2 rows are planned apart, and yet meet in the same order.
TEST(BatchSums, AreBegunInOneOrder) {
  const Type types[] = {Type::get(DType::f32, {5, 4}), Type::get(DType::f32, {4, 4})};
  const Graph whole = specialize(two(), bind_inputs(two(), types).value()).value();
  const BatchInputs batch = {.rows = 5, .dims = {0, kWhole}};
  const DividedCode code = divided_code(whole, batch, 2, host_target().value(), {}).value();
  ASSERT_EQ(code.images.size(), 2U);
  for (const Image& image : code.images) {
    std::vector<std::string> results;
    for (const image::Command& command : image.commands)
      if (const auto* start = std::get_if<image::Start>(&command.kind))
        results.push_back(start->result);
    EXPECT_THAT(results, testing::ElementsAre("s", "g"));
  }
  EXPECT_EQ(code.division.shares[1], (BatchDivision::Share{.first = 3, .count = 2, .code = 1}));
}

// A sum of many bytes is a ring, unless the devices are far from each other.
TEST(BatchSums, AreScheduledByTheSystem) {
  const Graph whole = parse_graph(R"(
    graph @wide(%x: f32[8, 128]) -> f32[128, 128] {
      %g = dot %x, %x {lhs_contract = [0], rhs_contract = [0]}
      return %g
    })")
                          .value();
  const Target target = host_target().value();
  const auto schedule = [&](const System* system) {
    CompileOptions options;
    options.plan.threads = 1;
    const DividedCode code =
        divided_code(whole, {.rows = 8, .dims = {0}}, 4, target, options, system).value();
    const Plan plan = parse_plan(code.plans[0]).value();
    EXPECT_EQ(plan.collective.size(), 1U);
    const std::vector<Tensor> inputs = random_inputs(whole, 3).value();
    const auto devices = ManyDevices::load(code.division, code.inputs, code.outputs, code.images,
                                           {.names = names(4), .threads = 1})
                             .value();
    EXPECT_EQ(difference(devices->run(inputs).value(), evaluate(whole, inputs).value(), 1e-5), "");
    return plan.collective.begin()->second.algorithm;
  };
  EXPECT_EQ(schedule(nullptr), CollectiveAlgorithm::ring);
  System far = preset_system("ring:4", target).value();
  for (Links& each : far.links) each.latency = 1;
  EXPECT_NE(schedule(&far), CollectiveAlgorithm::ring);
  // A system of another number of devices says nothing.
  const System other = preset_system("ring:5", target).value();
  EXPECT_EQ(schedule(&other), CollectiveAlgorithm::ring);
}

}  // namespace
}  // namespace hone::HONE_FILE
