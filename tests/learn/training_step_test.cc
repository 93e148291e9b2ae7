#include "learn/training_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "learn/losses.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor numbers(const Dims& dims, std::vector<double> all, DType dtype = DType::f32) {
  return Tensor::from_reals(Type::get(dtype, dims), all);
}
std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> all(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, all);
  return all;
}

// y = x w + bias, with weights of this type.
Graph line(DType dtype = DType::f32) {
  Builder b("line");
  const Value x = b.parameter("x", dtype, {4, 2});
  const Value w = b.constant(numbers({2, 1}, {0.5, -0.25}, dtype), "w");
  const Value bias = b.constant(numbers({1}, {0.125}, dtype), "bias");
  Result<Graph> graph = b.finish({(matmul(x, w) + bias).named("y")});
  EXPECT_TRUE(graph.ok());
  return *graph;
}

TrainingStep step_of(const Graph& model, std::string loss, std::string_view optimizer,
                     std::vector<std::string> frozen = {}) {
  Result<TrainingStep> step = training_step(
      model, {.loss = std::move(loss),
              .optimizer = optimizer == "none" ? nullptr : find_optimizer(optimizer).value(),
              .frozen = std::move(frozen)});
  EXPECT_TRUE(step.ok()) << step.error().to_string();
  return step.ok() ? *std::move(step) : TrainingStep();
}

std::vector<std::string> names_of(const TrainingStep& step) {
  std::vector<std::string> names;
  for (const NamedTensor& each : step.state) names.push_back(each.name);
  return names;
}

// Runs a step again and again, each on what the one before it has left.
class Training {
 public:
  Training(TrainingStep step, std::map<std::string, Tensor> given)
      : step_(std::move(step)), values_(std::move(given)) {
    for (const NamedTensor& each : step_.state) values_[each.name] = each.tensor;
  }

  double loss() {  // of the next step
    std::vector<Tensor> inputs;
    for (ValueId v : step_.graph.inputs())
      inputs.push_back(values_.at(std::string(step_.graph.name(v))));
    Result<std::vector<Tensor>> outputs = evaluate(step_.graph, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
    for (const Donation& each : step_.graph.donations())
      values_[std::string(step_.graph.name(step_.graph.inputs()[each.input]))] =
          outputs->at(each.output);
    return numbers_of(outputs->front())[0];
  }
  std::vector<double> operator[](const std::string& name) const {
    return numbers_of(values_.at(name));
  }

 private:
  TrainingStep step_;
  std::map<std::string, Tensor> values_;
};

const Tensor kX = numbers({4, 2}, {1, 0, 0, 1, 1, 1, 2, -1});
const Tensor kTarget = numbers({4, 1}, {2, -1, 1, 5});  // 2 x0 - x1

// The gradient of mean((x w + b - t)^2) by hand.
TEST(TrainingStep, OfALineIsTheFormula) {
  Training training(step_of(line(), "mse", "sgd"), {{"x", kX}, {"target", kTarget}});
  const std::array<double, 2> w = {0.5, -0.25};
  const double bias = 0.125, rate = 0.01;
  const std::vector<double> x = numbers_of(kX), t = numbers_of(kTarget);
  double loss = 0, by_bias = 0;
  std::array<double, 2> by_w = {};
  for (size_t i = 0; i < 4; ++i) {
    const double off = x[2 * i] * w[0] + x[2 * i + 1] * w[1] + bias - t[i];
    loss += off * off / 4;
    by_bias += off / 2;
    for (size_t k = 0; k < 2; ++k) by_w[k] += off * x[2 * i + k] / 2;
  }
  EXPECT_NEAR(training.loss(), loss, 1e-6);
  EXPECT_NEAR(training["w"][0], w[0] - rate * by_w[0], 1e-6);
  EXPECT_NEAR(training["w"][1], w[1] - rate * by_w[1], 1e-6);
  EXPECT_NEAR(training["bias"][0], bias - rate * by_bias, 1e-6);
  EXPECT_EQ(training["step"], std::vector{1.0});
}

TEST(TrainingStep, OfEveryOptimizerDescends) {
  for (const Optimizer& each : optimizers()) {
    SCOPED_TRACE(each.name);
    Training training(step_of(line(), "mse", each.name), {{"x", kX}, {"target", kTarget}});
    const double before = training.loss();
    double after = before;
    for (int i = 0; i < 300; ++i) after = training.loss();
    EXPECT_LT(after, 0.8 * before);
  }
}

// Whatever the gradient's size is: its mean and root mean square are corrected for their start.
TEST(TrainingStep, OfAdamBeginsWithTheRate) {
  Training training(step_of(line(), "mse", "adam"), {{"x", kX}, {"target", kTarget}});
  training.loss();
  EXPECT_NEAR(std::abs(training["w"][0] - 0.5), 1e-3, 1e-6);
  EXPECT_NEAR(std::abs(training["bias"][0] - 0.125), 1e-3, 1e-6);
}

TEST(TrainingStep, UpdatesShortWeightsInFloat) {
  const TrainingStep step = step_of(line(DType::bf16), "mse", "adam");
  for (const NamedTensor& each : step.state) {
    if (each.name == "w") EXPECT_EQ(each.tensor.dtype(), DType::bf16);
    if (each.name == "w.square") EXPECT_EQ(each.tensor.dtype(), DType::f32);
  }
}

TEST(TrainingStep, DonatesWhatTheNextOneGets) {
  const TrainingStep step = step_of(line(), "mse", "momentum");
  EXPECT_THAT(names_of(step),
              ElementsAre("rate", "step", "w", "w.velocity", "bias", "bias.velocity"));
  EXPECT_EQ(step.graph.donations().size(), 5u);
  for (const Donation& each : step.graph.donations())
    EXPECT_EQ(std::string(step.graph.name(step.graph.inputs()[each.input])) + ".next",
              step.graph.name(step.graph.outputs()[each.output]));
}

TEST(TrainingStep, WithoutOptimizerHasGradients) {
  const TrainingStep step = step_of(line(), "mse", "none");
  EXPECT_THAT(names_of(step), ElementsAre("w", "bias"));
  EXPECT_EQ(step.graph.name(step.graph.outputs()[1]), "w.grad");
}

TEST(TrainingStep, LeavesFrozenWeights) {
  EXPECT_THAT(names_of(step_of(line(), "mse", "sgd", {"b*"})), ElementsAre("rate", "step", "w"));
  const Result<TrainingStep> none =
      training_step(line(), {.optimizer = optimizers().data(), .frozen = {"c"}});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().to_string(), HasSubstr("no weight is called 'c'"));
  EXPECT_FALSE(training_step(line(), {.frozen = {"*"}}).ok());
}

// The statistics of a norm were counted, not learned.
TEST(TrainingStep, LeavesMeansAndVariances) {
  Builder b;
  const auto channels = [&](std::string_view name, double value) {
    return b.constant(numbers({2}, {value, value}), name);
  };
  const Value x = b.parameter("x", DType::f32, {3, 2});
  const Value y = batch_norm(x, channels("scale", 1), channels("bias", 0), channels("mean", 0.5),
                             channels("variance", 2));
  EXPECT_THAT(names_of(step_of(b.finish({y}).value(), "mse", "none")),
              ElementsAre("scale", "bias"));
}

TEST(TrainingStep, TakesAnOutputAsLoss) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {2});
  const Value w = b.constant(numbers({2}, {3, 4}), "w");
  const Value norm = reduce_sum(w * w * x, {0}).named("norm");
  const Graph graph = b.finish({x + 1, norm}).value();
  Training training(step_of(graph, "norm", "sgd"), {{"x", numbers({2}, {1, 2})}});
  EXPECT_NEAR(training.loss(), 9 + 32, 1e-5);
  EXPECT_NEAR(training["w"][0], 3 - 0.01 * 6, 1e-6);
  EXPECT_NEAR(training["w"][1], 4 - 0.01 * 16, 1e-6);
}

TEST(TrainingStep, RefusesWhatIsNoLoss) {
  const auto why = [](const Graph& graph, std::string loss) {
    const Result<TrainingStep> step = training_step(graph, {.loss = std::move(loss)});
    return step.ok() ? "" : step.error().to_string();
  };
  EXPECT_THAT(why(line(), "y"), says("real number"));
  EXPECT_THAT(why(line(), "hinge"), says("mse, cross-entropy ... y"));
  Builder b;
  const Value x = b.parameter("x", DType::f32, {2});
  const Value w = b.constant(numbers({2}, {3, 4}), "w");
  const Graph jumps = b.finish({unary(Opcode::floor, x * w).named("y")}).value();
  EXPECT_THAT(why(jumps, "mse"), HasSubstr("no weights to train"));
  Builder c;
  const Graph whole = c.finish({c.parameter("x", DType::i32, {2})}).value();
  EXPECT_THAT(why(whole, "mse"), HasSubstr("no real output"));
}

// ---- Losses -------------------------------------------------------------------------------------

double cross_entropy_of(const Tensor& logits, std::vector<int64_t> labels, bool has_softmax) {
  Builder b;
  const Value w = b.constant(numbers({1}, {1}), "w");
  const Value x = b.parameter("x", logits.type()) * w;
  const Graph graph = b.finish({(has_softmax ? softmax(x) : x).named("y")}).value();
  const Type type = Type::get(DType::i64, {static_cast<int64_t>(labels.size())});
  Training training(step_of(graph, "cross-entropy", "sgd"),
                    {{"x", logits}, {"labels", Tensor::from_integers(type, labels)}});
  return training.loss();
}

TEST(Losses, CrossEntropyIsTheMeanOfMinusLogOfProbabilities) {
  const Tensor logits = numbers({2, 3}, {1, 2, 0.5, -1, 0, 3});
  const double first = 1 - std::log(std::exp(1) + std::exp(2) + std::exp(0.5));
  const double second = 3 - std::log(std::exp(-1) + std::exp(0) + std::exp(3));
  EXPECT_NEAR(cross_entropy_of(logits, {0, 2}, false), -(first + second) / 2, 1e-6);
  EXPECT_NEAR(cross_entropy_of(logits, {0, 2}, true), -(first + second) / 2, 1e-6);
  EXPECT_NEAR(cross_entropy_of(logits, {-4, 9}, false), -(first + second) / 2, 1e-6);
}

// A model that forbids classes gives them minus infinity.
TEST(Losses, CrossEntropyIsFiniteBesideForbiddenClasses) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(cross_entropy_of(numbers({1, 3}, {0, 0, -infinity}), {1}, false), std::log(2.0),
              1e-6);
}

}  // namespace
}  // namespace hone::HONE_FILE
