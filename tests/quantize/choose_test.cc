#include "quantize/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "quantize/seen.h"
#include "tests/base/says_testing.h"
#include "tests/quantize/models_testing.h"

namespace hone::HONE_FILE {
namespace {

using namespace hone::quantize;

using tested::refuses;

constexpr Precision kAll[] = {Precision::f16, Precision::bf16, Precision::w8,
                              Precision::w4,  Precision::w2,   Precision::int8};

Result<std::vector<Tensor>> run(const Graph& graph, std::span<const Tensor> inputs) {
  return evaluate(graph, inputs, {.numerics = Numerics::rounded});
}

// The reference. A layer takes as long as its constants have bytes.
QuantizeMachine machine() {
  QuantizeMachine machine;
  machine.compile = [](const Graph& graph) -> Result<RunGraph> {
    return RunGraph([graph](std::span<const Tensor> inputs) { return run(graph, inputs); });
  };
  machine.seconds = [](const Graph& graph) -> Result<double> {
    double bytes = 0;
    for (NodeId n : graph.nodes())
      if (graph.opcode(n) == Opcode::constant)
        bytes += static_cast<double>(graph.constant(n).byte_size());
    return bytes * 1e-9;
  };
  return machine;
}

Batches batches(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  const auto dims = graph.type(graph.inputs()[0]).dims();
  Batches batches;
  for (int i = 0; i < 4; ++i)
    (i < 3 ? batches.calibration : batches.unseen)
        .push_back({.inputs = {tested::normal(rng, {dims.begin(), dims.end()})}});
  return batches;
}

double error_between(const Graph& a, const Graph& b, const std::vector<Tensor>& inputs) {
  return difference(run(a, inputs).value(), run(b, inputs).value()).value().error;
}

// The data of the probe lose 13 bits, and the graph asks for as many of GPUs. Weights are rounded.
TEST(Quantized, Tf32KeepsTypesAndSaysHowManyBitsCount) {
  const Graph graph = tested::two_products(1);
  const std::vector<Layer> layers = layers_of(graph).value();
  const std::vector<LayerChoice> choices(2, {.level = Precision::tf32});
  const Graph made = quantized(graph, layers, choices, 32).value();
  int products = 0;
  for (NodeId n : made.nodes()) {
    if (made.opcode(n) != Opcode::dot) continue;
    ++products;
    EXPECT_EQ(made.op(n).integer("parts"), 1);
    EXPECT_EQ(made.type(made.result(n)).dtype(), DType::f32);
    const Tensor& weights = made.constant(made.producer(made.operands(n)[1]));
    for (const float weight : weights.as<float>())
      EXPECT_EQ(std::bit_cast<uint32_t>(weight) & ~kTf32Bits, 0U);
  }
  EXPECT_EQ(products, 2);
  Rng rng(2);
  std::vector<Tensor> inputs = {tested::normal(rng, {6, 48})};
  for (const Layer& layer : layers)
    for (Tensor& each : probe_inputs(layer, choices[0], 32)) inputs.push_back(std::move(each));
  std::vector<Tensor> probed = run(probe(graph, layers).value(), inputs).value();
  probed.resize(1);
  const std::vector<Tensor> exact = run(graph, std::span(inputs).first(1)).value();
  const double error = difference(probed, exact).value().error;
  EXPECT_GT(error, 5e-5);
  EXPECT_LT(error, 2e-3);
}

// ---- Graphs -------------------------------------------------------------------------------------

TEST(Quantized, ComputesWhatTheProbeMeasures) {
  for (const Graph& graph : {tested::two_products(1), tested::conv_and_product(2)}) {
    const std::vector<Layer> layers = layers_of(graph).value();
    const Graph probed = probe(graph, layers).value();
    const std::vector<Tensor> inputs = batches(graph, 7).calibration[0].inputs;
    for (Precision level : kAll) {
      if (std::ranges::any_of(
              layers, [&](const Layer& layer) { return !check_level(layer, level, 32).ok(); }))
        continue;
      const std::vector<LayerChoice> choices(layers.size(), {level, {-40, 60}});
      std::vector<Tensor> all = inputs;
      for (const Layer& layer : layers)
        for (Tensor& each : probe_inputs(layer, choices[0], 32)) all.push_back(std::move(each));
      const Graph written = quantized(graph, layers, choices, 32).value();
      ASSERT_TRUE(verify(written).ok()) << name(level);
      std::vector<Tensor> expected = run(probed, all).value();
      ASSERT_EQ(expected.size(), 1 + kProbeOutputs * layers.size());
      expected.resize(1);
      // Sums of another order, and what they move across a step of the grid.
      const double error = difference(run(written, inputs).value(), expected).value().error;
      EXPECT_LT(error, 2e-3) << name(level);
      // It differs from the f32 model.
      EXPECT_GT(error_between(written, graph, inputs), 1e-5) << name(level);
    }
  }
}

// One run of the probe sees each layer.
std::vector<Seen> seen_by_probe(const Graph& graph, std::span<const Layer> layers,
                                std::span<const LayerChoice> choices, std::vector<Tensor> inputs) {
  for (size_t l = 0; l < layers.size(); ++l)
    for (Tensor& each : probe_inputs(layers[l], choices[l], 32)) inputs.push_back(std::move(each));
  const std::vector<Tensor> outputs = run(probe(graph, layers).value(), inputs).value();
  std::vector<Seen> seen(layers.size());
  for (size_t l = 0; l < layers.size(); ++l)
    seen[l].add(std::span(outputs).subspan(1 + l * kProbeOutputs, kProbeOutputs));
  return seen;
}

TEST(Quantized, TellsRangesOfData) {
  const Graph graph = tested::two_products(1);
  const std::vector<Layer> layers = layers_of(graph).value();
  const std::vector<Tensor> inputs = batches(graph, 7).calibration[0].inputs;
  double low = 0, high = 0;
  for (int64_t i = 0; i < inputs[0].elements(); ++i) {
    low = std::min(low, inputs[0].real_at(i));
    high = std::max(high, inputs[0].real_at(i));
  }
  const std::vector<LayerChoice> as_it_is(layers.size());
  const std::vector<Seen> seen = seen_by_probe(graph, layers, as_it_is, inputs);
  EXPECT_EQ(seen[0].range().low, low);
  EXPECT_EQ(seen[0].range().high, high);
  EXPECT_EQ(seen[1].range().low, 0);  // behind relu
}

// Dim 1 has the channels. One of them is 20 times as large.
Tensor with_wide_channel(const Tensor& data) {
  int64_t inner = 1;
  for (int d = 2; d < data.type().rank(); ++d) inner *= data.type().dim(d).value();
  std::vector<double> values = reals_of(data);
  for (size_t i = 0; i < values.size(); ++i)
    if (static_cast<int64_t>(i) / inner % data.type().dim(1).value() == 3) values[i] *= 20;
  return Tensor::from_reals(data.type(), values);
}

// Data whose channels differ by much lose most of their bytes; so do features beside their mean.
TEST(Quantized, SmoothsAndCorrectsWhatCalibrationSaw) {
  for (const Graph& graph : {tested::two_products(1, 1, 64), tested::conv_and_product(2)}) {
    const std::vector<Layer> layers = layers_of(graph).value();
    std::vector<Tensor> inputs = batches(graph, 7).calibration[0].inputs;
    inputs[0] = with_wide_channel(inputs[0]);
    const std::vector<LayerChoice> as_it_is(layers.size());
    const std::vector<Seen> exact = seen_by_probe(graph, layers, as_it_is, inputs);
    std::vector<LayerChoice> choices(layers.size());
    for (size_t l = 0; l < layers.size(); ++l) {
      choices[l] = {.level = Precision::int8, .smoothing = exact[l].smoothing(layers[l])};
      choices[l].data = exact[l].range_after(choices[l].smoothing);
    }
    ASSERT_FALSE(choices[0].smoothing.empty());
    // The first layer alone: its correction changes the data of the next one.
    const std::vector<Seen> before = seen_by_probe(graph, layers, choices, inputs);
    choices[0].correction = before[0].correction(layers[0], exact[0]);
    ASSERT_FALSE(choices[0].correction.empty());
    const Graph written = quantized(graph, layers, choices, 32).value();
    ASSERT_TRUE(verify(written).ok());
    std::vector<Tensor> all = inputs;
    for (size_t l = 0; l < layers.size(); ++l)
      for (Tensor& each : probe_inputs(layers[l], choices[l], 32)) all.push_back(std::move(each));
    std::vector<Tensor> expected = run(probe(graph, layers).value(), all).value();
    expected.resize(1);
    EXPECT_LT(difference(run(written, inputs).value(), expected).value().error, 2e-3);
    EXPECT_LT(error_between(written, graph, inputs), 0.1);
    // The result of the layer has the mean that it has in f32.
    Builder b;
    const Graph alone = extract_subgraph(graph, std::vector{layers[0].node},
                                         std::vector{graph.result(layers[0].node)})
                            .value();
    const std::vector<Layer> one = layers_of(alone).value();
    const Graph corrected = quantized(alone, one, {&choices[0], 1}, 32).value();
    const Tensor now = run(corrected, inputs).value()[0], then = run(alone, inputs).value()[0];
    const int axis = one[0].result_axis;
    ASSERT_EQ(axis, 1);
    int64_t inner = 1;
    for (int d = axis + 1; d < then.type().rank(); ++d) inner *= then.type().dim(d).value();
    const int64_t features = then.type().dim(axis).value();
    std::vector<double> apart(static_cast<size_t>(features)), size = apart;
    for (int64_t i = 0; i < then.elements(); ++i) {
      apart[static_cast<size_t>(i / inner % features)] += now.real_at(i) - then.real_at(i);
      size[static_cast<size_t>(i / inner % features)] += std::abs(then.real_at(i));
    }
    for (size_t f = 0; f < apart.size(); ++f) EXPECT_LT(std::abs(apart[f]), 1e-4 * size[f]) << f;
  }
}

TEST(Seen, SmoothsOnlyWhereChannelsDiffer) {
  Rng rng(3);
  Builder b("g");
  const Value x = b.parameter("x", DType::f32, {32, 16});
  const Graph graph =
      b.finish({matmul(x, b.constant(tested::normal(rng, {16, 8}), "w")).named("y")}).value();
  const std::vector<Layer> layers = layers_of(graph).value();
  EXPECT_EQ(layers[0].data_axis, 1);
  EXPECT_EQ(layers[0].result_axis, 1);
  const std::vector<LayerChoice> as_it_is(1);
  const auto smoothing_of = [&](double first) {
    std::vector<double> values;
    for (int i = 0; i < 512; ++i) values.push_back((i % 16 == 0 ? first : 1) * (i % 2 ? -1 : 1));
    const Tensor data = Tensor::from_reals(Type::get(DType::f32, {32, 16}), values);
    return seen_by_probe(graph, layers, as_it_is, {data})[0];
  };
  const Seen wide = smoothing_of(100);
  const std::vector<double> factors = wide.smoothing(layers[0]);
  ASSERT_EQ(factors.size(), 16u);
  EXPECT_EQ(std::ranges::max_element(factors) - factors.begin(), 0);
  // The grid of the smoothed data spends its steps on all channels.
  EXPECT_LT(wide.range_after(factors).high, 0.5 * wide.range().high);
}

TEST(Quantized, GridsHoldTheRangeAndZero) {
  for (const DataRange& range :
       {DataRange{-1, 3}, DataRange{0.5, 2}, DataRange{-7, -1}, DataRange{0, 0}}) {
    const Grid grid = grid_of(range);
    const double scale = static_cast<double>(grid.scale);
    EXPECT_GE(grid.zero, 0);
    EXPECT_LE(grid.zero, 255);
    EXPECT_LE((0 - static_cast<double>(grid.zero)) * scale, std::min(range.low, 0.0) + scale / 2);
    EXPECT_GE((255 - static_cast<double>(grid.zero)) * scale,
              std::max(range.high, 0.0) - scale / 2);
  }
}

// ---- Choices ------------------------------------------------------------------------------------

TEST(ChooseLevels, StayWithinTheErrorOnUnseenInputs) {
  for (const Graph& graph : {tested::two_products(3), tested::conv_and_product(4)}) {
    const Batches given = batches(graph, 11);
    int64_t bytes_before = INT64_MAX;
    for (double error : {0.003, 0.02, 0.2}) {
      const Result<QuantizeResult> result = choose_levels(
          graph,
          {.levels = {std::begin(kAll), std::end(kAll)}, .only_faster = true, .error = error},
          given, machine());
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_LE(result->calibration.error, error);
      EXPECT_LE(error_between(result->graph, graph, given.unseen[0].inputs), error);
      int64_t bytes = 0;
      for (const LayerReport& report : result->reports) bytes += report.bytes;
      EXPECT_LE(bytes, bytes_before) << error;  // more error, smaller weights
      bytes_before = bytes;
    }
  }
}

TEST(ChooseLevels, LeaveWhatIsKept) {
  const Graph graph = tested::two_products(5);
  QuantizeOptions options = {.levels = {Precision::w4}, .error = 1, .keep = {"fir*"}};
  const QuantizeResult result = choose_levels(graph, options, batches(graph, 1), machine()).value();
  EXPECT_EQ(result.choices[0].level, Precision::f32);
  EXPECT_EQ(result.reports[0].why, "--keep");
  EXPECT_EQ(result.choices[1].level, Precision::w4);
  options.keep = {"third"};
  EXPECT_THAT(choose_levels(graph, options, batches(graph, 1), machine()),
              refuses(ErrorCode::usage, "'third'"));
}

TEST(ChooseLevels, KeepSensitiveLayers) {
  // The second layer alone has an error that is too large; the first goes through a sum of much.
  const Graph graph = parse_graph(R"(graph @g(%x: f32[2, 16]) -> f32[2, 2] {
    %w = constant 0.25 : f32[16, 2]
    %v = constant [1000, 1.4, 1, -1.4, 2.4, -3.3, 1.1, 0.3, 1.7, -1.9, 0.1, 0.5, 2.2, 3.3, 4.4, 5.5,
                   1, 1.4, 1, -1.4, 2.4, -3.3, 1.1, 0.3, 1.7, -1.9, 0.1, 0.5, 2.2, 3.3, 4.4, 5.5]
        : f32[16, 2]
    %a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %m = constant [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] : f32[16]
    %r = broadcast %m {dims = [2, 16], map = [1]}
    %z = mul %x, %r
    %b = dot %z, %v {lhs_contract = [1], rhs_contract = [0]}
    %y = add %a, %b
    return %y
  })")
                          .value();
  const QuantizeResult result =
      choose_levels(graph, {.levels = {Precision::w4}, .error = 0.02, .group = 16},
                    batches(graph, 2), machine())
          .value();
  EXPECT_EQ(result.reports[0].level, Precision::w4);
  EXPECT_EQ(result.reports[1].level, Precision::f32);
  EXPECT_EQ(result.reports[1].why, "the error");
}

TEST(ChooseLevels, SayWhatTheBestWouldBe) {
  const Graph graph = tested::two_products(6);
  EXPECT_THAT(choose_levels(graph, {.levels = {Precision::w4}, .error = 1e-6}, batches(graph, 1),
                            machine()),
              refuses(ErrorCode::mismatch, "1e-06 ... the best is 0. ... layer"));
}

TEST(ChooseLevels, RefuseModelsWithoutLayers) {
  const Graph none =
      parse_graph("graph @g(%x: f32[2, 2]) -> f32[2, 2] { %y = exp %x return %y }").value();
  EXPECT_THAT(choose_levels(none, {.levels = {Precision::w8}}, batches(none, 1), machine()),
              refuses(ErrorCode::unsupported, "no products"));
  const Graph data = parse_graph(R"(graph @g(%x: f32[2, 2]) -> f32[2, 2] {
    %y = dot %x, %x {lhs_contract = [1], rhs_contract = [0]} return %y })")
                         .value();
  EXPECT_THAT(choose_levels(data, {.levels = {Precision::w8}}, batches(data, 1), machine()),
              refuses(ErrorCode::unsupported, "'y' ... no constant weights"));
}

TEST(ChooseLevels, SmoothDataWhoseChannelsDiffer) {
  Rng rng(8);
  Builder b("g");
  const Value x = b.parameter("x", DType::f32, {64, 32});
  std::vector<double> scales(32, 1);
  scales[5] = 200;
  const Value wide =
      x * b.constant(Tensor::from_reals(Type::get(DType::f32, {32}), scales), "scales");
  // The weights of the wide channel are as much smaller.
  Tensor weights = tested::normal(rng, {32, 8});
  std::vector<double> numbers = reals_of(weights);
  for (size_t i = 5 * 8; i < 6 * 8; ++i) numbers[i] /= 200;
  weights = Tensor::from_reals(weights.type(), numbers);
  const Graph graph = b.finish({matmul(wide, b.constant(weights, "w")).named("y")}).value();
  const Batches given = batches(graph, 9);
  const QuantizeResult result =
      choose_levels(graph, {.levels = {Precision::int8}, .error = 0.2}, given, machine()).value();
  EXPECT_TRUE(result.reports[0].is_smoothed);
  EXPECT_THAT(remark(result.reports[0]), testing::HasSubstr("smoothed"));
  // The same without it.
  const std::vector<Layer> layers = layers_of(graph).value();
  LayerChoice plain = result.choices[0];
  plain.smoothing.clear(), plain.correction.clear();
  plain.data = {-800, 800};
  const Graph rough = quantized(graph, layers, {&plain, 1}, 32).value();
  EXPECT_LT(error_between(result.graph, graph, given.unseen[0].inputs),
            0.3 * error_between(rough, graph, given.unseen[0].inputs));
}

TEST(ChooseLevels, KeepWithinADropOfAnswers) {
  const Graph graph = tested::two_products(12);
  Batches given = batches(graph, 5);
  // The answers of f32 are right.
  for (auto* all : {&given.calibration, &given.unseen})
    for (Batch& batch : *all) {
      const Tensor output = run(graph, batch.inputs).value()[0];
      std::vector<int64_t> labels;
      for (int64_t row = 0; row < 6; ++row) {
        int64_t best = 0;
        for (int64_t c = 1; c < 8; ++c)
          if (output.real_at(row * 8 + c) > output.real_at(row * 8 + best)) best = c;
        labels.push_back(best);
      }
      batch.labels = Tensor::from_integers(Type::get(DType::i64, {6}), labels);
    }
  const QuantizeResult result =
      choose_levels(graph, {.levels = {Precision::w8}, .drop = 0.1}, given, machine()).value();
  EXPECT_EQ(result.calibration.answers.rows, 18);
  EXPECT_GE(result.calibration.answers.right, 17);
  EXPECT_EQ(result.unseen.answers.right_of_f32, 6);
  EXPECT_LE(result.unseen.answers.drop(), 0.1);
  // Weights of 4 bits move answers of this model.
  EXPECT_THAT(choose_levels(graph, {.levels = {Precision::w4}, .drop = 0.0}, given, machine()),
              refuses(ErrorCode::mismatch, "drop within 0 %"));
}

TEST(ChooseLevels, TellTheFront) {
  const Graph graph = tested::two_products(3);
  const QuantizeResult result = choose_levels(graph,
                                              {.levels = {std::begin(kAll), std::end(kAll)},
                                               .only_faster = true,
                                               .error = 0.02,
                                               .trials = 40},
                                              batches(graph, 11), machine())
                                    .value();
  ASSERT_GT(result.front.size(), 2u);
  int taken = 0;
  for (size_t i = 0; i < result.front.size(); ++i) {
    taken += result.front[i].is_taken ? 1 : 0;
    if (i == 0) continue;
    EXPECT_GT(result.front[i].cost, result.front[i - 1].cost);
    EXPECT_LT(result.front[i].error, result.front[i - 1].error);
  }
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(result.front.back().error, 0);  // f32
}

// ---- Differences --------------------------------------------------------------------------------

Tensor rows(std::vector<double> values) {
  return Tensor::from_reals(Type::get(DType::f32, {static_cast<int64_t>(values.size()) / 2, 2}),
                            values);
}

TEST(Difference, IsThatOfTheWorstOutput) {
  const Tensor expected = rows({3, 4, 0, 0}), near = rows({3, 4, 0, 1}), far = rows({3, 9, 0, 0});
  const Tensor both[] = {expected, expected}, actual[] = {near, far};
  const Difference all = difference(actual, both).value();
  EXPECT_DOUBLE_EQ(all.error, 1);  // 5 of 5; the first has 1 of 5
  EXPECT_DOUBLE_EQ(all.largest, 5);
  EXPECT_DOUBLE_EQ(*all.equal_best(), 0.5);  // of `near`: its second row has another best
}

TEST(Difference, CountsAnswersOverAllRuns) {
  const Tensor expected = rows({3, 4, 1, 0}), actual = rows({4, 3, 1, 0});
  const Tensor labels =
      Tensor::from_integers(Type::get(DType::i64, {2}), std::vector<int64_t>{1, 1});
  Difference all = difference({&actual, 1}, {&expected, 1}, &labels).value();
  all.add_run(difference({&expected, 1}, {&expected, 1}, &labels).value());
  EXPECT_EQ(all.answers.rows, 4);
  EXPECT_DOUBLE_EQ(*all.equal_best(), 0.75);
  EXPECT_EQ(all.answers.right_of_f32, 2);  // its first row is right, its second is not
  EXPECT_EQ(all.answers.right, 1);
  EXPECT_DOUBLE_EQ(all.answers.drop(), 0.25);
  const Difference unlabelled = difference({&actual, 1}, {&expected, 1}).value();
  EXPECT_DOUBLE_EQ(unlabelled.answers.drop(), 0.5);
}

TEST(Difference, HasNoMeasureBesideNumbersThatAreNotFinite) {
  const Tensor expected = rows({1, NAN}), actual = rows({1, 2});
  EXPECT_THAT(difference({&actual, 1}, {&expected, 1}),
              refuses(ErrorCode::bad_input, "element 1 of output 0"));
  const Difference other = difference({&expected, 1}, {&actual, 1}).value();
  EXPECT_TRUE(std::isinf(other.error));
}

}  // namespace
}  // namespace hone::HONE_FILE
