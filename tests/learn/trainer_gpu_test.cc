#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
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

// A GPU that has the kernels of steps and of evaluations.
struct Trained {
  explicit Trained(fake::Gpu gpu = {}) : cuda(gpu) {
    const BatchTypes types =
        types_of(Loader::make(data, options.loader).value().batch(0, 0).value());
    forward = trace(classify, Network::Mode::training, types).value();
    step = network_step(forward, options.update).value();
    add_kernels(step.graph, target, cuda, backing);
    add_kernels(trace(classify, Network::Mode::evaluation, types)->graph, target, cuda, backing);
    for (const NamedTensor& each : first_state(forward, options.update, options.seed))
      state_bytes += each.tensor.byte_size();
  }
  Result<Trainer> trainer() const { return Trainer::make(classify, data, target, options); }

  const TensorDataset data = signs(30);
  const FakeCuda cuda;
  GpuBacking backing;
  const std::shared_ptr<const CudaDevice> device = cuda.device().value();
  const Target target = gpu_target(*device).value();
  TrainingOptions options = options_on(device);
  Forward forward;
  NetworkStep step;
  int64_t state_bytes = 0;
};

void expect_same(std::span<const NamedTensor> actual, std::span<const NamedTensor> wanted) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(actual[i].tensor.same_bytes(wanted[i].tensor)) << wanted[i].name;
}

TEST(TrainerOnAGpu, TakesTheStepsOfACpu) {
  const Trained gpu;
  Result<Trainer> there = gpu.trainer();
  ASSERT_TRUE(there.ok()) << there.error().to_string();
  Trainer here =
      Trainer::make(classify, gpu.data, host_target().value(), options_on(nullptr)).value();
  for (int i = 0; i < 7; ++i) {
    const Result<StepResult> step = there->step();
    ASSERT_TRUE(step.ok()) << step.error().to_string();
    EXPECT_NEAR(step->loss, here.step()->loss, 1e-4) << i;
  }
  EXPECT_NEAR(there->evaluate(gpu.data)->loss, here.evaluate(gpu.data)->loss, 1e-4);
  const std::vector<NamedTensor> weights = there->weights(), known = here.weights();
  for (size_t i = 0; i < known.size(); ++i)
    for (int64_t e = 0; e < known[i].tensor.elements(); ++e)
      ASSERT_NEAR(weights[i].tensor.real_at(e), known[i].tensor.real_at(e), 1e-3) << known[i].name;
}

// A step takes a batch and three numbers, and gives the loss and what belongs to it. The state
// crosses the bus at the beginning, and at the end of an epoch.
TEST(TrainerOnAGpu, KeepsTheStateThere) {
  Trained gpu;
  gpu.options.epochs = 2;
  std::vector<fake::Counts> counts;
  gpu.options.on_step = [&](const StepResult&) { counts.push_back(gpu.cuda.counts()); };
  Trainer trainer = gpu.trainer().value();
  const int64_t to = gpu.cuda.counts().copied_to;  // constants
  const Result<TrainingResult> trained = trainer.train(&gpu.data);
  ASSERT_TRUE(trained.ok()) << trained.error().to_string();
  ASSERT_EQ(counts.size(), 6U);
  const int64_t batch = 10 * (4 * 4 + 8), numbers = 4 + 8 + 8, results = 1 + 3 * 4;
  EXPECT_EQ(counts[0].copied_to - to, gpu.state_bytes + batch + numbers);
  for (const size_t i : {1U, 2U, 4U, 5U}) {
    EXPECT_EQ(counts[i].copied_to - counts[i - 1].copied_to, batch + numbers) << i;
    EXPECT_EQ(counts[i].copied_from - counts[i - 1].copied_from, results) << i;
    EXPECT_EQ(counts[i].copied, counts[i - 1].copied) << i;
    EXPECT_EQ(counts[i].allocations, counts[i - 1].allocations) << i;
  }
  const int64_t evaluated_to = 3 * batch, evaluated_from = 3 * 2 * 4;
  EXPECT_LE(counts[3].copied_to - counts[2].copied_to, batch + numbers + evaluated_to + 64)
      << "weights are not copied to judge them";
  EXPECT_EQ(counts[3].copied_from - counts[2].copied_from,
            results + evaluated_from + gpu.state_bytes);
}

TEST(TrainerOnAGpu, HasTheBitsOfStepsThatCopyTheState) {
  const Trained gpu;
  std::vector<NamedTensor> state = first_state(gpu.forward, gpu.options.update, gpu.options.seed);
  CompileOptions options;
  options.device = gpu.device;
  Compilation code(gpu.step.graph, gpu.target, options);
  const std::shared_ptr<const Runnable> copying = code.runnable().value();
  Loader loader = Loader::make(gpu.data,
                               [&] {
                                 LoaderOptions its = gpu.options.loader;
                                 its.seed = gpu.options.seed;
                                 return its;
                               }())
                      .value();
  Trainer trainer = gpu.trainer().value();
  for (int64_t i = 0; i < 3; ++i) {
    const Batch batch = loader.batch(0, i).value();
    std::vector<Tensor> inputs;
    for (const NamedTensor& each : state) inputs.push_back(each.tensor);
    inputs.push_back(Tensor::scalar(DType::f32, 0.05));
    inputs.push_back(Tensor::from_integers(Type::scalar(DType::i64), std::vector<int64_t>{i}));
    inputs.push_back(Tensor::from_integers(Type::scalar(DType::u64), std::vector<int64_t>{5}));
    for (const Network::Port& port : gpu.forward.of(Network::Role::input))
      inputs.push_back(batch.find(port.name)->second);
    const std::vector<Tensor> outputs = copying->run(inputs).value();
    for (size_t k = 0; k < state.size(); ++k) state[k].tensor = outputs[k];
    ASSERT_TRUE(trainer.step().ok());
  }
  std::vector<NamedTensor> averages;
  for (size_t k = 3; k < state.size(); k += 4) averages.push_back(state[k]);
  expect_same(trainer.weights(), averages);
}

TEST(TrainerOnAGpu, GoesOnFromACheckpointWithTheSameBits) {
  Trained gpu;
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  gpu.options.folder = folder.path();
  gpu.options.epochs = 2;
  gpu.options.save_every = 2;
  Trainer whole = gpu.trainer().value();
  ASSERT_TRUE(whole.train().ok());
  std::filesystem::remove(folder.path() / "last.safetensors");
  gpu.options.epochs = 1;
  Trainer first = gpu.trainer().value();
  ASSERT_TRUE(first.train().ok());
  gpu.options.epochs = 2;
  Trainer second = gpu.trainer().value();
  ASSERT_TRUE(second.resume().value());
  ASSERT_TRUE(second.train().ok());
  expect_same(second.weights(), whole.weights());
}

// Steps since the last checkpoint are lost with the GPU. The checkpoint stays as it is, and
// training goes on from it.
TEST(TrainerOnAGpu, LosesNoCheckpointWithTheGpu) {
  Trained gpu;
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  gpu.options.folder = folder.path();
  gpu.options.epochs = 3;
  gpu.options.on_step = [&](const StepResult& step) {
    if (step.step == 5) gpu.cuda.fail(2, 700);
  };
  Trainer trainer = gpu.trainer().value();
  const Result<TrainingResult> lost = trainer.train();
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.error().to_string(),
              tested::says("CUDA_ERROR_ILLEGAL_ADDRESS...since the last checkpoint"));
  Trainer here =
      Trainer::make(classify, gpu.data, host_target().value(), options_on(nullptr)).value();
  ASSERT_TRUE(here.load(folder.path() / "last.safetensors").ok());
  EXPECT_EQ(here.steps(), 3);
}

TEST(TrainerOnAGpu, SaysHowMuchMemoryTheStateLacks) {
  const Trained gpu({.memory = 4 << 20});
  Trainer trainer = gpu.trainer().value();
  const auto free = gpu.device->free_bytes().value();
  const auto rest =
      CudaArrays::make(gpu.device, {Type::get(DType::u8, {free - 512})}, "all that is left")
          .value();
  EXPECT_THAT(trainer.step(),
              refuses(ErrorCode::limit, "of it free...for the state of the training...missing"));
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
