#include "oracle/accuracy_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "compile/native_model.h"
#include "ir/text.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using Tensors = Contest::Tensors;

// The graph with an input more for each real output, which is added to it: a fault in native code.
Graph with_faults(const Graph& clean) {
  Graph graph = clean;
  std::vector<ValueId> outputs;
  for (ValueId output : clean.outputs()) {
    const Type type = graph.type(output);
    if (is_real(type.dtype())) {
      const ValueId operands[] = {output, graph.add_parameter(type)};
      output = graph.result(graph.append(Op::get(Opcode::add), operands).value());
    }
    outputs.push_back(output);
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

// Native code of a graph that may be wrong, beside the reference of the right one.
class Trial {
 public:
  explicit Trial(Graph graph)
      : graph_(std::move(graph)),
        native_(NativeModel::make(model_of(with_faults(graph_)), host_target().value()).value()) {
    for (ValueId output : graph_.outputs())
      if (is_real(graph_.type(output).dtype()))
        faults_.push_back(Tensor::zeros(graph_.type(output)));
  }

  ContestResult run(uint64_t seed) {
    const auto inputs_of = [&](uint64_t n) { return random_inputs(graph_, seed + n); };
    const Contest contest = {
        .native =
            [&](const Tensors& inputs) {
              Tensors all = inputs;
              all.insert(all.end(), faults_.begin(), faults_.end());
              return native_->run(all);
            },
        .reference =
            [&](const Tensors& inputs, Numerics numerics) {
              return evaluate(graph_, inputs, {.numerics = numerics, .real_outputs_as_f64 = true});
            },
        .other_inputs = inputs_of};
    return judge(contest, inputs_of(0).value()).value();
  }

  size_t real_outputs() const { return faults_.size(); }
  // From now on, one element of a real output is wrong by this much.
  void plant(size_t fault, double error, Rng& rng) {
    const Type type = faults_[fault].type();
    std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
    if (!numbers.empty()) numbers[rng.below(numbers.size())] = error;
    faults_[fault] = Tensor::from_reals(type, numbers);
  }
  void heal() {
    for (Tensor& fault : faults_) fault = Tensor::zeros(fault.type());
  }
  // Where the outputs of a run are real.
  std::vector<size_t> real_places() const {
    std::vector<size_t> places;
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      if (is_real(graph_.type(graph_.outputs()[i]).dtype())) places.push_back(i);
    return places;
  }

 private:
  const Graph graph_;
  const std::shared_ptr<const Runnable> native_;  // of a graph to which errors can be added
  Tensors faults_;                                // by real output
};

// All shapes of network that the zoo has.
constexpr std::string_view kModels[] = {
    "mlp",  "alexnet", "squeezenet", "resnet18",       "resnext50", "densenet121",  "mobilenet_v2",
    "unet", "yolo_v3", "bert_base",  "vit_b16",        "mixer",     "gpt2",         "gpt2_decode",
    "lstm", "gnmt",    "nas_rnn",    "transformer_xl", "dlrm",      "graph_network"};

struct Counts {
  int64_t runs = 0, alarms = 0, judged_again = 0, planted = 0, missed = 0;

  void add(const Counts& other) {
    runs += other.runs;
    alarms += other.alarms;
    judged_again += other.judged_again;
    planted += other.planted;
    missed += other.missed;
  }
  std::string to_string() const {
    return fmt::format("{} runs, {} judged again, {} false alarms; {} planted errors, {} missed",
                       runs, judged_again, alarms, planted, missed);
  }
};

// The seeds of a model: as the code is, and, on some, with an error of 4 times what is allowed in
// one element of a random output.
Counts count(std::string_view model, uint64_t seeds, uint64_t plant_each) {
  SCOPED_TRACE(model);
  Counts counts;
  Rng rng(0);
  Trial trial(build_zoo_model(model, {.size = ZooSize::tiny}).value());
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const ContestResult clean = trial.run(seed);
    ++counts.runs;
    counts.judged_again += clean.runs > 1 ? 1 : 0;
    counts.alarms += clean.failed() > 0 ? 1 : 0;
    for (const Accuracy& output : clean.outputs)
      EXPECT_TRUE(output.passed()) << "seed " << seed << ": " << output.to_string();
    if (seed % plant_each != 0 || trial.real_outputs() == 0) continue;
    // The allowed error is known once all runs count: the fault has all of them made.
    const size_t fault = rng.below(trial.real_outputs());
    const size_t output = trial.real_places()[fault];
    trial.plant(fault, 1e30, rng);
    const double allowed = trial.run(seed).outputs[output].allowed;
    trial.plant(fault, 4 * allowed, rng);
    ++counts.planted;
    counts.missed += trial.run(seed).failed() > 0 ? 0 : 1;
    trial.heal();
  }
  return counts;
}

TEST(AccuracyRuns, RaisesNoFalseAlarmAndFindsPlantedErrors) {
  const Counts counts = count(kModels[0], 20, 4);
  EXPECT_EQ(counts.alarms, 0);
  EXPECT_EQ(counts.planted, 5);
  EXPECT_EQ(counts.missed, 0);
}

// As of a loop that does not converge in fp32.
TEST(AccuracyRuns, APlainWayWithoutAResultExcusesNothing) {
  const auto tensor = [](double number) {
    return Tensor::from_reals(Type::get(DType::f64, {1}), std::vector{number});
  };
  const auto verdict = [&](double actual) {
    const Contest contest = {
        .native = [&](const Tensors&) -> Result<Tensors> { return Tensors{tensor(actual)}; },
        .reference = [&](const Tensors&, Numerics numerics) -> Result<Tensors> {
          if (numerics == Numerics::fp32) return over_limit("it does not end");
          return Tensors{tensor(1)};
        }};
    return judge(contest, {}).value();
  };
  EXPECT_EQ(verdict(1 + 0x1p-52).failed(), 0);
  EXPECT_EQ(verdict(1 + 0x1p-40).failed(), 1);
  EXPECT_EQ(verdict(1 + 0x1p-40).runs, 5u);  // there are no other inputs
}

TEST(AccuracyRuns, DISABLED_SweepFalseAlarmsAndPlantedErrors) {
  Counts counts;
  for (std::string_view model : kModels) {
    const Counts own = count(model, 250, 10);
    fmt::print("{:14} {}\n", model, own.to_string());
    std::fflush(stdout);
    counts.add(own);
  }
  EXPECT_EQ(counts.runs, 5000);
  EXPECT_EQ(counts.alarms, 0);
  EXPECT_EQ(counts.missed, 0);
  fmt::print("{:14} {}\n", "all", counts.to_string());
}

}  // namespace
}  // namespace hone::HONE_FILE
