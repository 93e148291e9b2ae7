#include "quantize/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/rng.h"
#include "base/temporary_files.h"
#include "formats/npy.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/quantize/models_testing.h"

namespace hone::HONE_FILE {
namespace {

using namespace hone::quantize;

using tested::refuses;

int64_t number(int64_t pattern, bool is_signed) {
  return is_signed && pattern > 127 ? pattern - 256 : pattern;
}

// Each pair of numbers has the product that `product` says.
Tensor table_of(bool is_signed, const std::function<int64_t(int64_t, int64_t)>& product) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < 256; ++row)
    for (int64_t column = 0; column < 256; ++column)
      all.push_back(product(number(row, is_signed), number(column, is_signed)));
  return Tensor::from_integers(Type::get(DType::i32, {256, 256}), all);
}
Multiplier multiplier(std::string name, bool is_signed, double power,
                      const std::function<int64_t(int64_t, int64_t)>& product) {
  return multiplier_of(std::move(name), is_signed, power, 1, table_of(is_signed, product)).value();
}
int64_t exactly(int64_t a, int64_t b) { return a * b; }

std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> inputs) {
  return evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
}
QuantizeMachine reference_machine() {
  QuantizeMachine machine;
  machine.compile = [](const Graph& graph) -> Result<RunGraph> {
    return RunGraph([graph](std::span<const Tensor> inputs) {
      return evaluate(graph, inputs, {.numerics = Numerics::rounded});
    });
  };
  return machine;
}

// ---- Products of a table ------------------------------------------------------------------------

// One layer in plain loops: data [rows, inputs] by weights [outputs, inputs].
struct PlainLayer {
  int64_t rows, inputs, outputs;
  std::function<double(int64_t r, int64_t k)> data;  // NaN: padding
  std::function<int64_t(int64_t n, int64_t k)> weight;
  std::function<double(int64_t n)> scale;
  DataRange range;
  bool is_signed;
  Tensor table;

  std::vector<double> result() const {  // [rows, outputs]
    const double most = std::max(-range.low, range.high);
    const Grid grid = is_signed ? Grid{static_cast<float>(most / 127), 0} : grid_of(range);
    const double least = is_signed ? -128 : 0, highest = is_signed ? 127 : 255;
    const int64_t middle = is_signed ? 0 : 128;
    std::vector<double> y;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < outputs; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inputs; ++k) {
          const double v = data(r, k);
          const double q = std::isnan(v) ? static_cast<double>(grid.zero)
                                         : std::clamp(std::nearbyint(static_cast<double>(
                                                          static_cast<float>(v) / grid.scale)) +
                                                          static_cast<double>(grid.zero),
                                                      least, highest);
          const auto x = static_cast<int64_t>(q);
          const int64_t w = weight(n, k) + middle;
          sum += table.integer_at((x & 255) * 256 + (w & 255));
          if (!is_signed) sum += -middle * x - grid.zero * w + grid.zero * middle;
        }
        y.push_back(static_cast<double>(sum) * scale(n) * static_cast<double>(grid.scale));
      }
    return y;
  }
};

void expect_close(const Tensor& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.elements(), std::ssize(expected));
  double most = 0;
  for (double v : expected) most = std::max(most, std::abs(v));
  for (int64_t i = 0; i < actual.elements(); ++i)
    ASSERT_NEAR(actual.real_at(i), expected[static_cast<size_t>(i)], 1e-5 * most) << i;
}

Tensor random_table(Rng& rng, bool is_signed) {
  return table_of(is_signed, [&](int64_t a, int64_t b) { return a * b + rng.between(-300, 300); });
}

TEST(HardwareProducts, OfMatricesAreLookedUp) {
  for (int i = 0; i < 16; ++i) {
    Rng rng(static_cast<uint64_t>(i));
    const bool is_signed = i % 2 == 0, on_left = i % 4 >= 2, is_transposed = i % 8 >= 4;
    const int64_t rows = rng.between(1, 6), inputs = rng.between(1, 9), outputs = rng.between(1, 5);
    const Tensor w = is_transposed != on_left ? tested::normal(rng, {outputs, inputs})
                                              : tested::normal(rng, {inputs, outputs});
    const bool is_first = w.type().dim(1).is(inputs) && is_transposed != on_left;
    const Tensor x = tested::normal(rng, {rows, inputs});
    Builder b;
    const Value data = b.parameter("x", x.type()), weights = b.constant(w, "w");
    const int64_t summed = is_first ? 1 : 0;
    const Value y = on_left ? dot_general(weights, data, {}, {}, {summed}, {1})
                            : dot_general(data, weights, {}, {}, {1}, {summed});
    const Graph graph = b.finish({y}).value();
    const ByteLayer l = byte_layer(graph, layers_of(graph).value()[0]).value();
    EXPECT_EQ(l.products(), rows * inputs * outputs);
    const DataRange range = {-1.5, 2.5};
    const Tensor table = random_table(rng, is_signed);
    const Tensor flat = table.viewed_as(Type::get(DType::i32, {65536}));
    const PackedWeights packed = packed_weights(l.layer, Precision::int8, 0);
    PlainLayer plain = {.rows = rows,
                        .inputs = inputs,
                        .outputs = outputs,
                        .data = {},
                        .weight = {},
                        .scale = {},
                        .range = range,
                        .is_signed = is_signed,
                        .table = table};
    plain.data = [&](int64_t r, int64_t k) { return x.real_at(r * inputs + k); };
    plain.weight = [&](int64_t n, int64_t k) {
      return packed.numbers.integer_at(is_first ? n * inputs + k : k * outputs + n);
    };
    plain.scale = [&](int64_t n) { return packed.scales.real_at(n); };
    std::vector<double> expected = plain.result();
    if (on_left) {
      std::vector<double> turned;
      for (int64_t n = 0; n < outputs; ++n)
        for (int64_t r = 0; r < rows; ++r)
          turned.push_back(expected[static_cast<size_t>(r * outputs + n)]);
      expected = turned;
    }
    SCOPED_TRACE(i);
    const Graph open = with_products(graph, {&l, 1}, {&range, 1}, is_signed, {}).value();
    expect_close(run(open, std::vector{x, flat})[0], expected);
    const Graph fixed = with_products(graph, {&l, 1}, {&range, 1}, is_signed, {&flat, 1}).value();
    EXPECT_TRUE(run(fixed, {{x}})[0].same_bytes(run(open, std::vector{x, flat})[0]));
  }
}

TEST(HardwareProducts, OfConvolutionsAreThoseOfTheirWindows) {
  for (int i = 0; i < 8; ++i) {
    Rng rng(static_cast<uint64_t>(90 + i));
    const bool is_signed = i % 2 == 0;
    const int64_t stride = 1 + i % 3, pad = i % 2 + 1, dilation = 1 + i / 4, in = 2, out = 3,
                  size = 7;
    const Tensor x = tested::normal(rng, {2, in, size, size}),
                 w = tested::normal(rng, {out, in, 3, 2});
    Builder b;
    const Value y =
        conv(b.parameter("x", x.type()), b.constant(w, "w"),
             {.stride = {stride, 1}, .padding = {pad, 0, pad, 1}, .dilation = {dilation, 1}});
    const Graph graph = b.finish({y}).value();
    const ByteLayer l = byte_layer(graph, layers_of(graph).value()[0]).value();
    const Type result = graph.type(graph.outputs()[0]);
    const int64_t high = result.dim(2).value(), wide = result.dim(3).value();
    const Tensor table = random_table(rng, is_signed);
    const Tensor flat = table.viewed_as(Type::get(DType::i32, {65536}));
    const PackedWeights packed = packed_weights(l.layer, Precision::int8, 0);
    const DataRange range = {-2, 3};
    PlainLayer plain = {.rows = 2 * high * wide,
                        .inputs = in * 6,
                        .outputs = out,
                        .data = {},
                        .weight = {},
                        .scale = {},
                        .range = range,
                        .is_signed = is_signed,
                        .table = table};
    plain.data = [&](int64_t r, int64_t k) {  // k: feature, row and column of the kernel
      const int64_t n = r / (high * wide), c = k / 6;
      const int64_t row = r / wide % high * stride + k % 6 / 2 * dilation - pad,
                    column = r % wide + k % 2;
      const bool is_inside = row >= 0 && row < size && column >= 0 && column < size;
      return is_inside ? x.real_at(((n * in + c) * size + row) * size + column) : std::nan("");
    };
    plain.weight = [&](int64_t n, int64_t k) { return packed.numbers.integer_at(n * in * 6 + k); };
    plain.scale = [&](int64_t n) { return packed.scales.real_at(n); };
    const std::vector<double> in_rows = plain.result();
    std::vector<double> expected;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t p = 0; p < high * wide; ++p)
          expected.push_back(in_rows[static_cast<size_t>((n * high * wide + p) * out + o)]);
    SCOPED_TRACE(i);
    const Graph made = with_products(graph, {&l, 1}, {&range, 1}, is_signed, {&flat, 1}).value();
    EXPECT_EQ(made.type(made.outputs()[0]), graph.type(graph.outputs()[0]));
    expect_close(run(made, {{x}})[0], expected);
  }
}

// Exact unsigned products are those of bytes.
TEST(HardwareProducts, ThatAreExactAreThoseOfInt8) {
  for (const Graph& graph : {tested::two_products(1), tested::conv_and_product(2)}) {
    const std::vector<Layer> layers = layers_of(graph).value();
    std::vector<ByteLayer> in_bytes;
    for (const Layer& layer : layers) in_bytes.push_back(byte_layer(graph, layer).value());
    const std::vector<DataRange> ranges(layers.size(), {-4, 5});
    const std::vector<LayerChoice> choices(layers.size(), {Precision::int8, {-4, 5}});
    const Tensor flat = table_of(false, exactly).viewed_as(Type::get(DType::i32, {65536}));
    const std::vector<Tensor> tables(layers.size(), flat);
    const Graph by_table = with_products(graph, in_bytes, ranges, false, tables).value();
    const Graph plain = quantized(graph, layers, choices, 32).value();
    Rng rng(4);
    const auto dims = graph.type(graph.inputs()[0]).dims();
    const Tensor x = tested::normal(rng, {dims.begin(), dims.end()});
    const Difference far = difference(run(by_table, {{x}}), run(plain, {{x}})).value();
    EXPECT_LT(far.error, 2e-3);
  }
}

TEST(HardwareProducts, SayForWhatTheyAreNot) {
  const auto why = [](std::string_view text) {
    const Graph graph = parse_graph(text).value();
    return byte_layer(graph, layers_of(graph).value()[0]);
  };
  EXPECT_THAT(why(R"(graph @g(%x: f32[2, 2, 3]) -> f32[2, 2, 2] {
    %w = constant 1 : f32[2, 3, 2]
    %y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
    return %y
  })"),
              refuses(ErrorCode::unsupported, "not a matrix"));
  EXPECT_THAT(why(R"(graph @g(%x: f32[1, 4, 3, 3]) -> f32[1, 2, 3, 3] {
    %w = constant 1 : f32[2, 2, 1, 1]
    %y = conv %x, %w {groups = 2}
    return %y
  })"),
              refuses(ErrorCode::unsupported, "in groups"));
  EXPECT_THAT(why(R"(graph @g(%x: f32[1, 20000]) -> f32[1, 2] {
    %w = constant 1 : f32[20000, 2]
    %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    return %y
  })"),
              refuses(ErrorCode::unsupported, "20000 products"));
}

// ---- Multipliers --------------------------------------------------------------------------------

TEST(Multipliers, SayHowWrongTheyAre) {
  const Multiplier exact = multiplier("a", true, 1, exactly);
  EXPECT_TRUE(exact.is_exact());
  const Multiplier off = multiplier("b", false, 1, [](int64_t a, int64_t b) { return a * b + 2; });
  EXPECT_EQ(off.worst_error, 2);
  EXPECT_EQ(off.mean_error, 2);
  const auto made = [](Tensor table) { return multiplier_of("c", true, 1, 1, std::move(table)); };
  EXPECT_THAT(made(Tensor::zeros(Type::get(DType::i32, {16, 16}))),
              refuses(ErrorCode::bad_input, "'c' ... i32[256, 256]"));
  EXPECT_THAT(made(Tensor::zeros(Type::get(DType::f32, {256, 256}))),
              refuses(ErrorCode::bad_input, "f32[256, 256]"));
  EXPECT_THAT(
      made(table_of(true, [](int64_t a, int64_t b) { return a == 3 && b == 5 ? 1 << 30 : 0; })),
      refuses(ErrorCode::bad_input, "row 3, column 5"));
}

TEST(Multipliers, AreLoadedBesideTheirTarget) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto target = [&](std::string_view lines) {
    const std::filesystem::path path = folder.path() / "chip.target";
    std::ofstream(path) << fmt::format(
        "target \"chip\" {{\n isa = avx2\n cores = 1\n cache = 48 KiB for 1 core at 300 GB/s\n"
        " memory = 8 GiB at 12 GB/s a core, 12 GB/s in all\n peak f64 = 50 Gop/s\n"
        " peak f32 = 100 Gop/s\n fork_join = 1 us\n{}\n}}\n",
        lines);
    return path;
  };
  ASSERT_TRUE(write_npy(folder.path() / "e.npy", table_of(true, exactly)).ok());
  ASSERT_TRUE(
      write_npy(folder.path() / "z.npy", table_of(true, [](int64_t, int64_t) { return 0; })).ok());
  const std::string exact = "multiplier = \"e\", signed, 2 mW, 1 um2, \"e.npy\"\n",
                    zero = "multiplier = \"z\", signed, 1 mW, 1 um2, \"z.npy\"\n";
  const std::vector<Multiplier> all = load_multipliers(target(exact + zero)).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].is_exact());
  EXPECT_EQ(all[1].worst_error, 128 * 128);
  EXPECT_TRUE(load_multipliers(target("")).value().empty());
  EXPECT_THAT(load_multipliers(target(zero)), refuses(ErrorCode::bad_input, "... is exact"));
  EXPECT_THAT(
      load_multipliers(target(exact + "multiplier = \"u\", unsigned, 1 mW, 1 um2, \"e.npy\"\n")),
      refuses(ErrorCode::bad_input, "'e' and 'u'"));
  EXPECT_FALSE(
      load_multipliers(target("multiplier = \"n\", signed, 1 mW, 1 um2, \"no.npy\"\n")).ok());
}

// ---- Choosing -----------------------------------------------------------------------------------

Batches hardware_batches(const Graph& graph) {
  Rng rng(2);
  const auto dims = graph.type(graph.inputs()[0]).dims();
  Batches batches;
  for (int i = 0; i < 4; ++i)
    (i < 3 ? batches.calibration : batches.unseen)
        .push_back({.inputs = {tested::normal(rng, {dims.begin(), dims.end()})}});
  return batches;
}

TEST(ChooseMultipliers, SaveEnergyWithinTheError) {
  const Graph graph = tested::two_products(1);
  const auto cut = [](int64_t bits) {
    return [bits](int64_t a, int64_t b) { return a * b / (1 << bits) * (1 << bits); };
  };
  const std::vector<Multiplier> all = {
      multiplier("exact", true, 1, exactly), multiplier("fine", true, 0.7, cut(6)),
      multiplier("coarse", true, 0.4, cut(10)),
      multiplier("none", true, 0.01, [](int64_t, int64_t) { return 0; })};
  const Batches batches = hardware_batches(graph);
  double before = 1;
  for (double error : {0.03, 0.1, 0.4}) {
    const HardwareResult result =
        choose_multipliers(graph, {.error = error, .trials = 8}, all, batches, reference_machine())
            .value();
    const double share = result.energy / result.energy_exact;
    EXPECT_LE(share, before);
    before = share;
    EXPECT_LE(result.calibration.error, error);
    EXPECT_LE(result.unseen.error, error);
    double energy = 0, exact = 0;
    for (const HardwareReport& report : result.reports) {
      EXPECT_NE(report.multiplier, "none");
      energy += report.energy, exact += report.energy_exact;
      EXPECT_EQ(report.energy_exact, static_cast<double>(report.products));
    }
    EXPECT_DOUBLE_EQ(result.energy, energy);
    EXPECT_DOUBLE_EQ(result.energy_exact, exact);
    EXPECT_EQ(std::ranges::count(result.front, true, &FrontPoint::is_taken), 1);
    // The graph that is written computes what was measured.
    const Tensor& x = batches.unseen[0].inputs[0];
    const double written = difference(run(result.graph, {{x}}), run(graph, {{x}})).value().error;
    EXPECT_NEAR(written, result.unseen.error, 1e-6);
  }
  EXPECT_LT(before, 0.75);
  EXPECT_THAT(choose_multipliers(graph, {.error = 1e-6}, all, batches, reference_machine()),
              refuses(ErrorCode::mismatch, "exact products"));
  EXPECT_THAT(
      choose_multipliers(graph, {.error = 0.1, .keep = {"no"}}, all, batches, reference_machine()),
      refuses(ErrorCode::usage, "'no'"));
  const HardwareResult kept = choose_multipliers(graph, {.error = 0.1, .keep = {"first"}}, all,
                                                 batches, reference_machine())
                                  .value();
  EXPECT_EQ(kept.reports[0].multiplier, "");
  EXPECT_EQ(kept.reports[0].why, "--keep");
}

}  // namespace
}  // namespace hone::HONE_FILE
