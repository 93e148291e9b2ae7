#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/trainer.h"
#include "session/gpu.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/backing_testing.h"

// Training on the fake GPU: beside training on the CPU.

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::refuses;

// Four numbers, with label 1 if their sum is above 0.
TensorDataset signs(int64_t count) {
  Rng rng(1);
  std::vector<double> numbers;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += numbers.emplace_back(rng.uniform(-1, 1));
    labels.push_back(sum > 0 ? 1 : 0);
  }
  return TensorDataset::make(
             {{"x", Tensor::from_reals(Type::get(DType::f32, {count, 4}), numbers)},
              {"label", Tensor::from_integers(Type::get(DType::i64, {count}), labels)}})
      .value();
}

Objective classify(Network& net) {
  const Value hidden = gelu(linear(net, "hidden", net.input("x"), 8));
  const Value scores = linear(net, "scores", hidden, 2);
  const Value label = net.input("label");
  const Value is_right = cast(compare("eq", argmax(scores, -1), label), DType::f32);
  return {cross_entropy(scores, label), {{"right", reduce_mean(is_right, {0})}}};
}

TrainingOptions options_on(std::shared_ptr<const CudaDevice> device) {
  TrainingOptions options;
  options.update.optimizer = find_optimizer("adam").value();
  options.update.average = 0.9;
  options.loader.batch_size = 10;
  options.rate = constant_rate(0.05);
  options.seed = 5;
  options.compile.device = std::move(device);
  return options;
}

// Gives the GPU the kernels of a graph that the trainer makes.
void add_kernels(const Graph& graph, const Target& target, const FakeCuda& cuda,
                 GpuBacking& backing) {
  Compilation compilation(graph, target, {});
  const Status added = backing.add(cuda, *compilation.program().value(), target);
  ASSERT_TRUE(added.ok()) << added.error().to_string();
}

TEST(TrainerOnAGpu, TakesTheStepsOfACpu) {
  const TensorDataset data = signs(30);
  const FakeCuda cuda;
  GpuBacking backing;
  const auto device = cuda.device().value();
  const Target target = gpu_target(*device).value();
  const TrainingOptions options = options_on(device);
  const BatchTypes types = types_of(Loader::make(data, options.loader).value().batch(0, 0).value());
  const Forward forward = trace(classify, Network::Mode::training, types).value();
  add_kernels(network_step(forward, options.update)->graph, target, cuda, backing);
  add_kernels(trace(classify, Network::Mode::evaluation, types)->graph, target, cuda, backing);

  Result<Trainer> there = Trainer::make(classify, data, target, options);
  ASSERT_TRUE(there.ok()) << there.error().to_string();
  Trainer here = Trainer::make(classify, data, host_target().value(), options_on(nullptr)).value();
  for (int i = 0; i < 7; ++i) {
    const Result<StepResult> step = there->step();
    ASSERT_TRUE(step.ok()) << step.error().to_string();
    EXPECT_NEAR(step->loss, here.step()->loss, 1e-4) << i;
  }
  EXPECT_NEAR(there->evaluate(data)->loss, here.evaluate(data)->loss, 1e-4);
  const std::vector<NamedTensor> weights = there->weights(), known = here.weights();
  for (size_t i = 0; i < known.size(); ++i)
    for (int64_t e = 0; e < known[i].tensor.elements(); ++e)
      ASSERT_NEAR(weights[i].tensor.real_at(e), known[i].tensor.real_at(e), 1e-3) << known[i].name;
}

TEST(TrainerOnAGpu, HasNoOtherDevices) {
  const FakeCuda cuda;
  const auto device = cuda.device().value();
  const TensorDataset data = signs(30);
  TrainingOptions options = options_on(device);
  options.devices = {"cpu 0", "cpu 1"};
  EXPECT_THAT(Trainer::make(classify, data, gpu_target(*device).value(), options),
              refuses(ErrorCode::usage, "GPU...alone"));
}

}  // namespace
}  // namespace hone::HONE_FILE
