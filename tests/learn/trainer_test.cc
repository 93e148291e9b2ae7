#include "learn/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "base/rng.h"
#include "ir/reference/evaluate.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor reals(const Dims& dims, const std::vector<double>& values) {
  return Tensor::from_reals(Type::get(DType::f32, dims), values);
}

// y = sin(3 a) b, of two numbers.
TensorDataset wave(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> x, y;
  for (int64_t i = 0; i < count; ++i) {
    const double a = rng.uniform(-1, 1), b = rng.uniform(-1, 1);
    x.insert(x.end(), {a, b});
    y.push_back(std::sin(3 * a) * b);
  }
  return TensorDataset::make({{"x", reals({count, 2}, x)}, {"y", reals({count, 1}, y)}}).value();
}

Objective fit(Network& net) {
  const Value hidden = dropout(net, relu(linear(net, "in", net.input("x"), 8)), 0.1);
  const Value loss = mean_squared_error(linear(net, "out", hidden, 1), net.input("y"));
  return {loss, {{"root", sqrt(loss)}}};
}

TrainingOptions small(int64_t epochs = 3) {
  TrainingOptions options;
  options.update.clip_norm = 1;
  options.update.average = 0.9;
  options.loader.batch_size = 8;
  options.rate = cosine_rate(0.02, 3, 40);
  options.epochs = epochs;
  options.seed = 5;
  return options;
}

Trainer make(const Dataset& data, TrainingOptions options = small(), Definition definition = fit) {
  Result<Trainer> made =
      Trainer::make(std::move(definition), data, host_target().value(), std::move(options));
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *std::move(made);
}

std::string failure(const Definition& definition, const Dataset& data) {
  const Result<Trainer> made = Trainer::make(definition, data, host_target().value(), small());
  return made.ok() ? "made" : made.error().to_string();
}

TEST(Trainer, Learns) {
  const TensorDataset data = wave(256, 1), validation = wave(64, 2);
  TrainingOptions options = small(30);
  options.rate = constant_rate(0.02);
  Trainer trainer = make(data, options);
  const double before = trainer.evaluate(validation).value().loss;
  const Result<TrainingResult> result = trainer.train(&validation);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->epochs.size(), 30u);
  EXPECT_EQ(trainer.steps(), 30 * 32);
  EXPECT_LT(result->best_loss, before / 3);
  const StepResult now = trainer.evaluate(validation).value();
  EXPECT_EQ(now.metrics.at(0).first, "root");
  EXPECT_EQ(now.loss, result->epochs.back().validation->loss);
}

TEST(Trainer, FrozenNetworksComputeTheSame) {
  const TensorDataset data = wave(64, 1);
  Trainer trainer = make(data);
  ASSERT_TRUE(trainer.train().ok());
  const Batch batch = data.batch(std::vector<int64_t>{0, 1, 2}, 0).value();
  const auto outputs = [](Network& net) { return std::vector{fit(net).loss}; };
  const Result<Graph> graph = trainer.frozen(outputs, types_of(batch));
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const std::vector<Tensor> inputs = {batch.at("x"), batch.at("y")};
  const TensorDataset few = TensorDataset::make(batch).value();
  EXPECT_NEAR(evaluate(*graph, inputs).value()[0].real_at(0), trainer.evaluate(few).value().loss,
              1e-6);
  EXPECT_THAT(trainer.weights()[0].name, "in/weight");
}

// ---- The same bits ------------------------------------------------------------------------------

std::vector<double> losses_of(Trainer& trainer, int64_t steps) {
  std::vector<double> losses;
  while (trainer.steps() < steps) losses.push_back(trainer.step().value().loss);
  return losses;
}

TEST(Trainer, TheSameSeedGivesTheSameBits) {
  const TensorDataset data = wave(64, 1);
  Trainer first = make(data);
  const std::vector<double> losses = losses_of(first, 20);
  for (uint64_t i = 1; i < tested::share_of(10, 3); ++i) {
    Trainer again = make(data);
    EXPECT_EQ(losses_of(again, 20), losses);
  }
  TrainingOptions options = small();
  options.seed = 6;
  Trainer other = make(data, options);
  EXPECT_NE(losses_of(other, 20), losses);
}

TEST(Trainer, ResumesToTheSameBits) {
  HONE_ONE_RUN_OF(5);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "now.safetensors";
  const TensorDataset data = wave(61, 1);
  for (const std::string_view optimizer : {"adam", "momentum", "adamw", "sgd"}) {
    TrainingOptions options = small();
    options.update.optimizer = find_optimizer(optimizer).value();
    Trainer whole = make(data, options);
    const std::vector<double> losses = losses_of(whole, 40);
    Rng rng(9);
    std::vector<double> parts;
    for (int64_t steps = 0; steps < 40;) {
      Trainer part = make(data, options);
      if (steps > 0) ASSERT_TRUE(part.load(path).ok());
      steps = std::min<int64_t>(steps + rng.between(1, 15), 40);
      const std::vector<double> more = losses_of(part, steps);
      parts.insert(parts.end(), more.begin(), more.end());
      ASSERT_TRUE(part.save(path).ok());
    }
    EXPECT_EQ(parts, losses) << optimizer;
    const Safetensors last = read_safetensors(path).value();
    for (const NamedTensor& each : whole.weights())
      EXPECT_TRUE(last.find(each.name + ".average")->same_bytes(each.tensor)) << each.name;
  }
}

TEST(Trainer, AnInterruptedRunIsResumed) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const TensorDataset data = wave(64, 1), validation = wave(16, 2);
  TrainingOptions options = small(4);
  options.folder = folder.path() / "whole";
  Trainer whole = make(data, options);
  const TrainingResult result = whole.train(&validation).value();

  options.folder = folder.path() / "parts";
  CancelToken cancel;
  options.compile.cancel = &cancel;
  options.on_step = [&](const StepResult& done) {
    if (done.step == 13) cancel.cancel();
  };
  Trainer part = make(data, options);
  EXPECT_EQ(part.train(&validation).error().code(), ErrorCode::interrupted);
  EXPECT_EQ(part.steps(), 13);
  options.compile.cancel = nullptr;
  Trainer rest = make(data, options);
  ASSERT_TRUE(rest.resume().value());
  EXPECT_EQ(rest.steps(), 13);
  const TrainingResult finished = rest.train(&validation).value();
  EXPECT_EQ(finished.best_loss, result.best_loss);
  EXPECT_EQ(finished.epochs.back().loss, result.epochs.back().loss);
  EXPECT_EQ(read_file(folder.path() / "parts/last.safetensors", 1 << 20).value(),
            read_file(folder.path() / "whole/last.safetensors", 1 << 20).value());
}

TEST(Trainer, StopsWhenNothingGetsBetter) {
  const TensorDataset data = wave(64, 1);
  TrainingOptions options = small(50);
  options.rate = constant_rate(0);
  options.update.average = 0;
  options.patience = 2;
  Trainer trainer = make(data, options);
  const TrainingResult result = trainer.train(&data).value();
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.epochs.size(), 3u);
  EXPECT_EQ(result.best_epoch, 0);
}

// ---- Bad input ----------------------------------------------------------------------------------

TEST(Trainer, KeepsTheLastGoodStateAndNamesWhatWentBad) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const TensorDataset data = wave(64, 1);
  TrainingOptions options = small();
  options.folder = folder.path();
  // From step 5 on, the root is that of a number below 0.
  options.rate = [](int64_t step) { return step < 4 ? 0.001 : 1e20; };
  options.update = {.optimizer = find_optimizer("sgd").value()};
  Trainer trainer = make(data, options);
  const Result<TrainingResult> result = trainer.train();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::mismatch);
  EXPECT_THAT(result.error().what(), says("loss ... step 6"));
  EXPECT_THAT(result.error().what(), HasSubstr("first went bad: %"));
  EXPECT_EQ(trainer.steps(), 5);
  for (const NamedTensor& each : trainer.weights())
    for (int64_t i = 0; i < each.tensor.elements(); ++i)
      EXPECT_TRUE(std::isfinite(each.tensor.real_at(i))) << each.name;
  Trainer again = make(data, options);
  EXPECT_TRUE(again.resume().value());
  EXPECT_EQ(again.steps(), 5);
}

TEST(Trainer, NamesBadData) {
  const TensorDataset data =
      TensorDataset::make({{"x", reals({8, 2}, std::vector<double>(16, NAN))},
                           {"y", reals({8, 1}, std::vector<double>(8, 0))}})
          .value();
  Trainer trainer = make(data);
  EXPECT_THAT(trainer.step().error().what(),
              HasSubstr("first went bad: %x (parameter), element 0"));
}

TEST(Trainer, RefusesBadDefinitions) {
  const TensorDataset data = wave(64, 1);
  EXPECT_THAT(failure([](Network& net) { return Objective{net.input("z")}; }, data),
              says("tensor 'z' ... x, y"));
  EXPECT_THAT(
      failure([](Network& net) { return Objective{linear(net, "a", net.input("x"), 1)}; }, data),
      HasSubstr("the loss is f32[8, 1], not a single number"));
  EXPECT_THAT(
      failure([](Network& net) { return Objective{reduce_mean(net.input("x"), {0, 1})}; }, data),
      HasSubstr("no weights"));
  EXPECT_THAT(
      failure(
          [](Network& net) {
            net.weight("a", {2}, Initializer::constant(0));
            return Objective{reduce_mean(net.weight("a", {3}, Initializer::constant(0)), {0})};
          },
          data),
      says("weight 'a' ... f32[2] ... f32[3]"));
}

// As an older version of hone wrote them: the checksum is of the tensors alone.
void make_older(Safetensors& file) {
  Hasher hasher;
  for (const NamedTensor& each : file.tensors) hasher.add(each.name).add(each.tensor.bytes());
  file.metadata["content"] = fmt::format("{:016x}", hasher.value());
}

TEST(Trainer, RefusesCheckpointsOfOtherTraining) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  const TensorDataset data = wave(64, 1);
  Trainer trainer = make(data);
  ASSERT_TRUE(trainer.save(path).ok());
  TrainingOptions options = small();
  options.seed = 6;
  Trainer other = make(data, options);
  EXPECT_THAT(other.load(path).error().what(), HasSubstr("'seed' was 5"));
  Trainer wide = make(data, small(), [](Network& net) {
    const Value x = linear(net, "out", relu(linear(net, "in", net.input("x"), 9)), 1);
    return Objective{mean_squared_error(x, net.input("y"))};
  });
  EXPECT_THAT(wide.load(path).error().what(), HasSubstr("tensor 'in/weight' is f32[2, 8]"));
  Safetensors file = read_safetensors(path).value();
  make_older(file);
  file.metadata["batch"] = "-1";
  ASSERT_TRUE(write_safetensors(path, file).ok());
  EXPECT_THAT(trainer.load(path).error().what(), HasSubstr("'batch' is \"-1\""));
  file.metadata.erase("step");
  ASSERT_TRUE(write_safetensors(path, file).ok());
  EXPECT_THAT(trainer.load(path).error().what(), says("'step'"));
  EXPECT_FALSE(trainer.load(folder.path() / "none").ok());
  EXPECT_TRUE(trainer.step().ok());  // none of them changed it
}

// Whatever happened to a file, it is refused, and training goes on as if nobody had asked.
TEST(Trainer, RefusesDamagedCheckpoints) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  const TensorDataset data = wave(64, 1);
  Trainer trainer = make(data), untouched = make(data);
  ASSERT_TRUE(trainer.step().ok() && untouched.step().ok());
  ASSERT_TRUE(trainer.save(path).ok());
  const std::string whole = read_file(path, 1 << 20).value();
  const auto expect_refused = [&](const std::string& bytes, size_t at) {
    ASSERT_TRUE(write_file_atomic(path, bytes).ok());
    const Status loaded = trainer.load(path);
    ASSERT_FALSE(loaded.ok()) << "byte " << at;
    EXPECT_THAT(loaded.error().to_string(), HasSubstr("a.safetensors")) << "byte " << at;
  };
  for (size_t size = 0; size < whole.size(); size += 37)
    expect_refused(whole.substr(0, size), size);
  for (size_t at = whole.size() - 1; at > whole.size() / 2; at -= 29) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    expect_refused(damaged, at);
  }
  EXPECT_EQ(trainer.step().value().loss, untouched.step().value().loss);
}

// The numbers beside the tensors decide when training ends and which weights are the best.
TEST(Trainer, RefusesCheckpointsWithDamagedNumbers) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  const TensorDataset data = wave(64, 1);
  Trainer trainer = make(data);
  ASSERT_TRUE(trainer.step().ok());
  ASSERT_TRUE(trainer.save(path).ok());
  const Safetensors whole = read_safetensors(path).value();
  for (const auto& [key, value] : whole.metadata) {
    Safetensors damaged = read_safetensors(path).value();
    damaged.metadata[key] = value == "inf" ? "1" : value + "1";
    ASSERT_TRUE(write_safetensors(folder.path() / "b", damaged).ok());
    EXPECT_THAT(trainer.load(folder.path() / "b").error().what(), HasSubstr("is damaged")) << key;
  }
  EXPECT_TRUE(trainer.load(path).ok());
}

TEST(Trainer, LoadsCheckpointsOfOlderVersions) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  const TensorDataset data = wave(64, 1);
  Trainer trainer = make(data), other = make(data);
  ASSERT_TRUE(trainer.step().ok());
  ASSERT_TRUE(trainer.save(path).ok());
  Safetensors file = read_safetensors(path).value();
  make_older(file);
  ASSERT_TRUE(write_safetensors(path, file).ok());
  ASSERT_TRUE(other.load(path).ok());
  EXPECT_EQ(other.steps(), 1);
  EXPECT_EQ(trainer.step().value().loss, other.step().value().loss);
}

// ---- Data ---------------------------------------------------------------------------------------

// Sample i is a sequence of i ones.
class Sequences : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t length(int64_t sample) const override { return sample; }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override {
    const auto rows = static_cast<int64_t>(samples.size());
    std::vector<double> x(static_cast<size_t>(rows * bucket)), y;
    for (size_t i = 0; i < samples.size(); ++i) {
      for (int64_t t = 0; t < samples[i]; ++t)
        x[i * static_cast<size_t>(bucket) + static_cast<size_t>(t)] = 1;
      y.push_back(static_cast<double>(samples[i]));
    }
    return Batch{{"x", reals({rows, bucket}, x)}, {"y", reals({rows}, y)}};
  }
};

TEST(Loader, CutsBucketsAndShufflesByTheSeed) {
  const Sequences data;
  Loader loader = Loader::make(data, {.batch_size = 2, .buckets = {4, 9}, .seed = 1}).value();
  EXPECT_EQ(loader.batches(), 2 + 2);  // of 5 and 5 samples
  std::vector<std::vector<int64_t>> first;
  for (int64_t i = 0; i < 4; ++i) {
    first.push_back(loader.samples(0, i));
    const int64_t width = loader.batch(0, i).value().at("x").type().dim(1).value();
    for (const int64_t sample : first.back()) EXPECT_EQ(sample <= 4, width == 4);
  }
  (void)loader.samples(1, 0);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(loader.samples(0, i), first[static_cast<size_t>(i)]);
  Loader ordered = Loader::make(data, {.batch_size = 4, .buckets = {9}, .shuffles = false}).value();
  EXPECT_EQ(ordered.batches(), 3);
  EXPECT_THAT(ordered.samples(7, 2), ElementsAre(8, 9));
}

TEST(Loader, RefusesWhatDoesNotFit) {
  const Sequences data;
  EXPECT_THAT(Loader::make(data, {.buckets = {4, 8}}).error().what(),
              says("sample 9 ... length 9 ... 8"));
  EXPECT_THAT(Loader::make(data, {.buckets = {4, 4}}).error().what(), HasSubstr("increase"));
  EXPECT_THAT(Loader::make(data, {.batch_size = 11}).error().what(), HasSubstr("11 samples"));
  EXPECT_THAT(Loader::make(data, {.batch_size = 0}).error().what(), HasSubstr("at least 1"));
  EXPECT_THAT(
      TensorDataset::make({{"a", reals({2}, {1, 2})}, {"b", reals({1}, {1})}}).error().what(),
      HasSubstr("'b' has 1 samples, 'a' has 2"));
}

TEST(Trainer, CompilesOneStepPerBucket) {
  const Sequences data;
  TrainingOptions options = small(3);
  options.loader = {.batch_size = 2, .buckets = {4, 9}};
  Trainer trainer = make(data, options, [](Network& net) {
    const Value each = linear(net, "each", unsqueeze(net.input("x"), 2), 1);
    return Objective{mean_squared_error(reduce_sum(each, {1, 2}), net.input("y"))};
  });
  EXPECT_TRUE(trainer.train(&data).ok());
}

TEST(RateSchedule, RisesAndFalls) {
  const RateSchedule rate = cosine_rate(1, 2, 10, 0.25);
  EXPECT_EQ(rate(0), 0.5);
  EXPECT_EQ(rate(1), 1);
  EXPECT_NEAR(rate(6), 0.625, 1e-12);
  EXPECT_EQ(rate(10), 0.25);
  EXPECT_EQ(decaying_rate(1, 10, 0.5)(25), 0.25);
}

}  // namespace
}  // namespace hone::HONE_FILE
