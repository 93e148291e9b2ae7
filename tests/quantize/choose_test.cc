#include "quantize/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/quantize/models_testing.h"

namespace hone::HONE_FILE {
namespace {

using namespace hone::quantize;

using tested::refuses;

constexpr Precision kAll[] = {Precision::f16, Precision::bf16, Precision::w8, Precision::w4,
                              Precision::int8};

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
        .push_back({tested::normal(rng, {dims.begin(), dims.end()})});
  return batches;
}

double error_between(const Graph& a, const Graph& b, const std::vector<Tensor>& inputs) {
  return difference(run(a, inputs).value(), run(b, inputs).value()).value().error;
}

// ---- Graphs -------------------------------------------------------------------------------------

TEST(Quantized, ComputesWhatTheProbeMeasures) {
  for (const Graph& graph : {tested::two_products(1), tested::conv_and_product(2)}) {
    const std::vector<Layer> layers = layers_of(graph).value();
    const Graph probed = probe(graph, layers).value();
    const std::vector<Tensor> inputs = batches(graph, 7).calibration[0];
    for (Precision level : kAll) {
      const std::vector<LayerChoice> choices(layers.size(), {level, {-40, 60}});
      std::vector<Tensor> all = inputs;
      for (const Layer& layer : layers)
        for (Tensor& each : probe_inputs(layer, choices[0], 32)) all.push_back(std::move(each));
      const Graph written = quantized(graph, layers, choices, 32).value();
      ASSERT_TRUE(verify(written).ok()) << name(level);
      std::vector<Tensor> expected = run(probed, all).value();
      ASSERT_EQ(expected.size(), 1 + 2 * layers.size());
      expected.resize(1);
      // Sums of another order, and what they move across a step of the grid.
      const double error = difference(run(written, inputs).value(), expected).value().error;
      EXPECT_LT(error, 2e-3) << name(level);
      // It differs from the f32 model.
      EXPECT_GT(error_between(written, graph, inputs), 1e-5) << name(level);
    }
  }
}

TEST(Quantized, TellsRangesOfData) {
  const Graph graph = tested::two_products(1);
  const std::vector<Layer> layers = layers_of(graph).value();
  std::vector<Tensor> all = batches(graph, 7).calibration[0];
  double low = 0, high = 0;
  for (int64_t i = 0; i < all[0].elements(); ++i) {
    low = std::min(low, all[0].real_at(i));
    high = std::max(high, all[0].real_at(i));
  }
  for (const Layer& layer : layers)
    for (Tensor& each : probe_inputs(layer, {}, 32)) all.push_back(std::move(each));
  const std::vector<Tensor> outputs = run(probe(graph, layers).value(), all).value();
  EXPECT_EQ(outputs[1].real_at(0), low);
  EXPECT_EQ(outputs[2].real_at(0), high);
  EXPECT_EQ(outputs[3].real_at(0), 0);  // behind relu
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
      EXPECT_LE(error_between(result->graph, graph, given.unseen[0]), error);
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
  EXPECT_DOUBLE_EQ(*all.equal_best, 0.5);  // of `near`: its second row has another best
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
