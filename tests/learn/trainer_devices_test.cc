#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "compile/mesh_division.h"
#include "compile/spmd_programs.h"
#include "cost/analytic.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/trainer.h"
#include "session/training_shards.h"
#include "shard/node_division.h"
#include "target/presets.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/target/target_testing.h"

// Training on several devices: beside training on one.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// Texts of four words, whose label is how often word 3 is in them.
TensorDataset texts(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> words, labels;
  for (int64_t i = 0; i < count; ++i) {
    int64_t found = 0;
    for (int k = 0; k < 4; ++k) {
      words.push_back(rng.between(0, 5));
      found += words.back() == 3 ? 1 : 0;
    }
    labels.push_back(std::min<int64_t>(found, 2));
  }
  return TensorDataset::make(
             {{"words", Tensor::from_integers(Type::get(DType::i64, {count, 4}), words)},
              {"label", Tensor::from_integers(Type::get(DType::i64, {count}), labels)}})
      .value();
}

// A gradient that scatters, sums over rows and places, and counts of right answers.
Objective classify_with(Network& net, double drops) {
  Value x = embedding(net, "table", net.input("words"), 6, 8);
  x = layer_norm(net, "norm", gelu(linear(net, "hidden", x, 8)));
  x = reduce_mean(x, {1});
  if (drops > 0) x = dropout(net, x, drops);
  const Value scores = linear(net, "scores", x, 3);
  const Value label = net.input("label");
  const Value is_right = cast(compare("eq", argmax(scores, -1), label), DType::f32);
  return {cross_entropy(scores, label), {{"right", reduce_mean(is_right, {0})}}};
}

Objective classify(Network& net) { return classify_with(net, 0); }

TrainingOptions options_on(int64_t devices) {
  TrainingOptions options;
  options.update.optimizer = find_optimizer("momentum").value();
  options.update.clip_norm = 1;
  options.update.average = 0.9;
  options.loader.batch_size = 10;
  options.rate = constant_rate(0.05);
  options.epochs = 2;
  options.seed = 5;
  for (int64_t i = 0; devices > 1 && i < devices; ++i)
    options.devices.push_back(fmt::format("cpu {}", i));
  return options;
}

Trainer make(const Dataset& data, TrainingOptions options, Definition definition = classify) {
  Result<Trainer> made =
      Trainer::make(std::move(definition), data, host_target().value(), std::move(options));
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *std::move(made);
}

std::vector<double> losses_of(Trainer& trainer, int64_t steps) {
  std::vector<double> losses;
  while (trainer.steps() < steps) {
    const Result<StepResult> step = trainer.step();
    EXPECT_TRUE(step.ok()) << step.error().to_string();
    if (!step.ok()) break;
    losses.push_back(step->loss);
    losses.push_back(step->gradient_norm);
    losses.push_back(step->metrics.at(0).second);
  }
  return losses;
}

void expect_near(std::span<const double> actual, std::span<const double> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-4) << i;
}

TEST(TrainerOnDevices, TakesTheStepsOfOneDevice) {
  HONE_ONE_RUN_OF(5);
  const TensorDataset data = texts(60, 1), few = texts(13, 2);
  Trainer one = make(data, options_on(1));
  const std::vector<double> expected = losses_of(one, 8);
  for (int64_t devices : {2, 3, 8}) {
    Trainer trainer = make(data, options_on(devices));
    expect_near(losses_of(trainer, 8), expected);
    // The last batch has fewer samples than there are devices.
    EXPECT_NEAR(trainer.evaluate(few).value().loss, one.evaluate(few).value().loss, 1e-4);
    const std::vector<NamedTensor> weights = trainer.weights(), known = one.weights();
    for (size_t i = 0; i < known.size(); ++i)
      for (int64_t e = 0; e < known[i].tensor.elements(); ++e)
        ASSERT_NEAR(weights[i].tensor.real_at(e), known[i].tensor.real_at(e), 2e-4)
            << known[i].name << " " << e;
  }
}

// Each device draws the numbers of its own samples.
TEST(TrainerOnDevices, DropsTheSameElements) {
  const TensorDataset data = texts(60, 1);
  const Definition drops = [](Network& net) { return classify_with(net, 0.3); };
  Trainer one = make(data, options_on(1), drops), two = make(data, options_on(2), drops);
  const std::vector<double> expected = losses_of(one, 6);
  expect_near(losses_of(two, 6), expected);
}

TEST(TrainerOnDevices, GivesTheSameBitsAgain) {
  HONE_ONE_RUN_OF(5);
  const TensorDataset data = texts(60, 1);
  Trainer first = make(data, options_on(3));
  const std::vector<double> losses = losses_of(first, 6);
  for (int i = 0; i < 3; ++i) {
    Trainer again = make(data, options_on(3));
    EXPECT_EQ(losses_of(again, 6), losses);
  }
}

TEST(TrainerOnDevices, ACheckpointGoesOnOnAnyNumberOfThem) {
  HONE_ONE_RUN_OF(5);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "now.safetensors";
  const TensorDataset data = texts(60, 1);
  Trainer whole = make(data, options_on(1));
  const std::vector<double> expected = losses_of(whole, 12);
  std::vector<double> parts;
  int64_t steps = 0;
  for (int64_t devices : {1, 2, 3, 1}) {
    Trainer part = make(data, options_on(devices));
    if (steps > 0) ASSERT_TRUE(part.load(path).ok());
    const std::vector<double> more = losses_of(part, steps += 3);
    parts.insert(parts.end(), more.begin(), more.end());
    ASSERT_TRUE(part.save(path).ok());
  }
  expect_near(parts, expected);
}

// ---- Values divided on a mesh -------------------------------------------------------------------

struct OnMesh {
  std::string mesh;
  int64_t memory = 0;  // of a device; 0: what there is
};

// The graphs of the trainer, and how they were divided, in order.
using Made = std::vector<std::pair<Graph, ShardedModel>>;

decltype(TrainingOptions::divide) divided_on(const OnMesh& on, std::shared_ptr<Made> all = {}) {
  ShardRequest request = shard_request({}, on.mesh).value();
  request.is_auto = true;
  const auto shards = std::make_shared<TrainingShards>(request);
  return [=](const Graph& graph) -> Result<std::shared_ptr<const Runnable>> {
    const ShardRequest now = HONE_TRY(shards->request_for(graph));
    const int64_t devices = request.mesh->device_count();
    // The processor is fixed, so that the same parts are chosen on all.
    const Target priced = HONE_TRY(parse_target(kSampleTarget, "sample"));
    System system = HONE_TRY(preset_system(fmt::format("ring:{}", devices), priced));
    const std::shared_ptr<const Cost> cost =
        std::make_shared<const AnalyticCost>(system.targets[0]);
    const ShardedModel made =
        HONE_TRY(sharded_model(graph, request.mesh, now, system, {{cost}},
                               {.memory = on.memory, .seconds = 0, .steps = 2000}));
    shards->take(graph, made);
    if (all) all->emplace_back(graph, made);
    CompileOptions options;
    options.plan.threads = 1;
    const DividedCode code =
        HONE_TRY(spmd_programs(made.partition.graph, *host_target(), std::move(options), devices,
                               divided_inputs(made.partition)));
    return std::shared_ptr<const Runnable>(HONE_TRY(MeshModel::make(
        mesh_division(graph, made.subject, made.partition), made.subject.constants,
        HONE_TRY(ManyDevices::load(code.division, code.inputs, code.outputs, code.images, {})))));
  };
}

TrainingOptions options_of_mesh(const OnMesh& on, std::shared_ptr<Made> all = {}) {
  TrainingOptions options = options_on(1);
  options.divide = divided_on(on, std::move(all));
  return options;
}

TEST(TrainerOnMesh, TakesTheStepsOfOneDevice) {
  HONE_ONE_RUN_OF(3);
  const TensorDataset data = texts(60, 1), few = texts(13, 2);
  Trainer one = make(data, options_on(1));
  const std::vector<double> expected = losses_of(one, 8);
  for (const char* mesh : {"x=2", "x=2,y=2"}) {
    Trainer trainer = make(data, options_of_mesh({mesh}));
    expect_near(losses_of(trainer, 8), expected);
    EXPECT_NEAR(trainer.evaluate(few).value().loss, one.evaluate(few).value().loss, 1e-4);
  }
}

// A device that has room for a part alone has parts of weights and of what the optimizer keeps, and
// the next state lies as the last one does.
TEST(TrainerOnMesh, DividesTheStateWhereMemoryAsksForIt) {
  HONE_ONE_RUN_OF(2);
  const TensorDataset data = texts(60, 1);
  const auto free = std::make_shared<Made>(), tight = std::make_shared<Made>();
  Trainer whole = make(data, options_of_mesh({"x=4"}, free));
  const int64_t all = free->at(0).second.chosen->best.memory;
  Trainer trainer = make(data, options_of_mesh({"x=4", all * 7 / 10}, tight));
  const auto& [graph, made] = tight->at(0);
  EXPECT_LE(made.chosen->best.memory, all * 7 / 10);
  size_t divided = 0;
  ASSERT_FALSE(graph.donations().empty());
  for (const Donation& one : graph.donations()) {
    EXPECT_EQ(made.partition.inputs[one.input], made.partition.outputs[one.output]);
    if (made.partition.inputs[one.input] != undivided(graph.type(graph.inputs()[one.input])))
      ++divided;
  }
  EXPECT_GT(divided, 0u);
  Trainer one = make(data, options_on(1));
  expect_near(losses_of(trainer, 4), losses_of(one, 4));
  // An evaluation takes the weights as they lie.
  ASSERT_TRUE(trainer.evaluate(texts(16, 2)).ok());
  const auto& [step, of_step] = tight->front();
  const auto& [forward, of_forward] = tight->back();
  size_t alike = 0;
  for (size_t i = 0; i < forward.inputs().size(); ++i)
    for (size_t k = 0; k < step.donations().size(); ++k) {
      if (step.name(step.inputs()[k]) != forward.name(forward.inputs()[i])) continue;
      EXPECT_EQ(of_forward.partition.inputs[i], of_step.partition.inputs[k]);
      ++alike;
    }
  EXPECT_GT(alike, 1u);
}

// A checkpoint has whole tensors: any mesh goes on from it, with the same bits.
TEST(TrainerOnMesh, ACheckpointGoesOnOnAnyMesh) {
  HONE_ONE_RUN_OF(3);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "now.safetensors";
  const TensorDataset data = texts(60, 1);
  Trainer whole = make(data, options_on(1));
  const std::vector<double> expected = losses_of(whole, 8);
  std::vector<double> parts;
  std::vector<NamedTensor> last;
  for (const char* mesh : {"x=4", "x=2,y=2", "", "x=2"}) {
    Trainer part = make(data, *mesh == '\0' ? options_on(1) : options_of_mesh({.mesh = mesh}));
    if (!last.empty()) ASSERT_TRUE(part.load(path).ok());
    const std::vector<NamedTensor> now = part.weights();
    for (size_t i = 0; i < last.size(); ++i)
      EXPECT_TRUE(now[i].tensor.same_bytes(last[i].tensor)) << now[i].name;
    const std::vector<double> more = losses_of(part, part.steps() + 2);
    parts.insert(parts.end(), more.begin(), more.end());
    ASSERT_TRUE(part.save(path).ok());
    last = part.weights();
  }
  expect_near(parts, expected);
}

TEST(TrainerOnDevices, RefusesAnOpThatMixesSamples) {
  const TensorDataset data = texts(60, 1);
  const Definition worst = [](Network& net) -> Objective {
    const Value x = embedding(net, "table", net.input("words"), 6, 8);
    return {reduce_sum(reduce_max(x, {0}), {0, 1})};
  };
  EXPECT_THAT(Trainer::make(worst, data, host_target().value(), options_on(2)),
              refuses(ErrorCode::unsupported, "op 'reduce' mixes the rows"));
}

TEST(TrainerOnDevices, NamesWhatWentBad) {
  const TensorDataset data = texts(60, 1);
  TrainingOptions options = options_on(2);
  options.rate = constant_rate(1e38);
  options.update.clip_norm = 0;
  Trainer trainer = make(data, options);
  Result<StepResult> step = trainer.step();
  while (step.ok() && trainer.steps() < 10) step = trainer.step();
  EXPECT_THAT(step, refuses(ErrorCode::mismatch, "loss ... first went bad"));
}

}  // namespace
}  // namespace hone::HONE_FILE
