// Products by weights of few bits whose data are rounded to bytes.

#include "front/decoder/rounded_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "base/rng.h"
#include "base/temporary_files.h"
#include "compile/compilation.h"
#include "front/onnx/onnx.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "target/target.h"
#include "tests/front/onnx_testing.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

using namespace onnx_testing;  // NOLINT: operands of a node

struct Case {
  int64_t bits = 4, group = 32, inputs = 96, outputs = 5, rows = 3;
  enum class Zeros { none, bytes, reals } zeros = Zeros::none;

  int64_t groups() const { return (inputs + group - 1) / group; }
};

Case random_case(Rng& rng) {
  Case c = {.bits = int64_t{2} << rng.below(3), .group = int64_t{16} << rng.below(3)};
  c.inputs = rng.between(1, 150), c.outputs = rng.between(1, 9);
  c.rows = rng.chance(0.3) ? rng.between(30, 40) : rng.between(1, 4);
  c.zeros = static_cast<Case::Zeros>(rng.below(3));
  return c;
}

// The operands of the files, and the numbers in them.
struct Weights {
  std::vector<int64_t> numbers;  // [outputs, groups * group]
  std::vector<double> zeros;     // [outputs, groups]
  Tensor bytes, scales, zero_bytes, zero_reals;
};

Tensor packed(const std::vector<int64_t>& numbers, int64_t row, int64_t bits, const Ints& dims) {
  std::vector<int64_t> bytes;
  for (size_t first = 0; first < numbers.size(); first += static_cast<size_t>(row)) {
    const auto begin = std::ssize(bytes);
    bytes.resize(bytes.size() + static_cast<size_t>((row * bits + 7) / 8));
    for (int64_t i = 0; i < row; ++i)
      bytes[static_cast<size_t>(begin + i * bits / 8)] |= numbers[first + static_cast<size_t>(i)]
                                                          << (i * bits % 8);
  }
  return Tensor::from_integers(type_of(DType::u8, dims), bytes);
}

Weights weights_of(const Case& c, Rng& rng) {
  const int64_t most = (int64_t{1} << c.bits) - 1, groups = c.groups();
  Weights w;
  std::vector<int64_t> zeros;
  std::vector<double> scales;
  for (int64_t i = 0; i < c.outputs * groups * c.group; ++i)
    w.numbers.push_back(rng.between(0, most));
  for (int64_t i = 0; i < c.outputs * groups; ++i) {
    zeros.push_back(rng.between(0, most));
    scales.push_back(std::ldexp(static_cast<double>(rng.between(3, 9)), -5));
    w.zeros.push_back(c.zeros == Case::Zeros::none    ? static_cast<double>((most + 1) / 2)
                      : c.zeros == Case::Zeros::bytes ? static_cast<double>(zeros.back())
                                                      : static_cast<double>(zeros.back()) + 0.25);
  }
  w.bytes = packed(w.numbers, c.group, c.bits, {c.outputs, groups, c.group * c.bits / 8});
  w.scales = reals({c.outputs, groups}, scales);
  w.zero_bytes = packed(zeros, groups, c.bits, {c.outputs, (groups * c.bits + 7) / 8});
  w.zero_reals = reals({c.outputs, groups}, w.zeros);
  return w;
}

// Plain loops: data are rounded by rows and groups, products of bytes summed exactly.
std::vector<double> plain_product(const Case& c, const Weights& w, std::span<const float> x) {
  std::vector<double> y;
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t n = 0; n < c.outputs; ++n) {
      double sum = 0;
      for (int64_t g = 0; g < c.groups(); ++g) {
        const int64_t first = g * c.group, end = std::min(first + c.group, c.inputs);
        float most = 0;
        for (int64_t k = first; k < end; ++k)
          most = std::max(most, std::abs(x[static_cast<size_t>(row * c.inputs + k)]));
        const float inverse = most == 0 ? 0 : 127 / most;
        int64_t products = 0, data = 0;
        for (int64_t k = first; k < end; ++k) {
          const auto q = static_cast<int64_t>(
              std::nearbyint(x[static_cast<size_t>(row * c.inputs + k)] * inverse));
          products +=
              q * w.numbers[static_cast<size_t>((n * c.groups() + g) * c.group + k - first)];
          data += q;
        }
        const auto at = static_cast<size_t>(n * c.groups() + g);
        sum += (static_cast<double>(products) - w.zeros[at] * static_cast<double>(data)) *
               w.scales.real_at(static_cast<int64_t>(at)) * static_cast<double>(most / 127);
      }
      y.push_back(sum);
    }
  return y;
}

std::string model_of_case(const Case& c, const Weights& w, int64_t level,
                          bool are_rows_open = false) {
  std::vector<Operand> operands = {
      reals({c.rows, c.inputs}, Numbers(static_cast<size_t>(c.rows * c.inputs), 1)),
      constant(w.bytes), constant(w.scales)};
  if (c.zeros == Case::Zeros::bytes) operands.push_back(constant(w.zero_bytes));
  if (c.zeros == Case::Zeros::reals) operands.push_back(constant(w.zero_reals));
  return node_model("MatMulNBits", 1, operands,
                    {{"K", c.inputs},
                     {"N", c.outputs},
                     {"bits", c.bits},
                     {"block_size", c.group},
                     {"accuracy_level", level}},
                    {.domain = "com.microsoft", .symbolic = are_rows_open, .numbers = {c.inputs}});
}

Graph graph_of(const std::string& model) {
  return *single_graph(parse_onnx(std::as_bytes(std::span(model)), "test.onnx", ".").value());
}

Tensor data_of(const Case& c, Rng& rng) {
  std::vector<double> x;
  for (int64_t i = 0; i < c.rows * c.inputs; ++i) x.push_back(rng.uniform(-3, 3));
  return reals({c.rows, c.inputs}, x);
}

TEST(RoundedProducts, AreThoseOfPlainLoops) {
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const Case c = random_case(rng);
    const Weights w = weights_of(c, rng);
    const Tensor x = data_of(c, rng);
    const Graph graph = graph_of(model_of_case(c, w, kLevelOfBytes));
    const std::vector<double> wanted = plain_product(c, w, x.as<float>());
    const Tensor y = evaluate(graph, std::vector{x}, {.numerics = Numerics::rounded}).value()[0];
    ASSERT_EQ(y.elements(), std::ssize(wanted));
    double largest = 1;
    for (double each : wanted) largest = std::max(largest, std::abs(each));
    for (int64_t j = 0; j < y.elements(); ++j)
      EXPECT_NEAR(y.real_at(j), wanted[static_cast<size_t>(j)], 1e-5 * largest) << j;
  }
}

// Results of ONNX Runtime 1.32, on a processor with AVX-512. With data as they are, the first
// number of 4 bits is -5.9732.
TEST(RoundedProducts, AreThoseOfOnnxRuntime) {
  struct Known {
    int64_t bits;
    Case::Zeros zeros;
    Numbers results;
  };
  const Known all[] = {
      {4, Case::Zeros::none, {-5.95781612, -6.75674534, -4.12957001, -2.00513172}},
      {4, Case::Zeros::bytes, {-2.89707422, -23.6165581, -3.09090328, -9.36424351}},
      {8, Case::Zeros::none, {-13.2333946, -153.09642, -31.0924377, -424.299805}},
      {8, Case::Zeros::bytes, {-62.0061722, 115.519547, -136.336105, -312.693817}}};
  for (const Known& known : all) {
    const Case c = {.bits = known.bits,
                    .group = 16,
                    .inputs = 40,
                    .outputs = 2,
                    .rows = 2,
                    .zeros = known.zeros};
    const int64_t groups = c.groups(), of_all = c.outputs * groups;
    std::vector<int64_t> zeros;
    std::vector<double> scales, x;
    Weights w;
    for (int64_t i = 0; i < of_all * c.group; ++i)
      w.numbers.push_back((i * 7 + 3) % (int64_t{1} << c.bits));
    for (int64_t i = 0; i < of_all; ++i) {
      zeros.push_back((i * 3 + 1) % (int64_t{1} << c.bits));
      scales.push_back(static_cast<double>(1 + i % 5) / 16);
    }
    for (int64_t i = 0; i < c.rows * c.inputs; ++i)
      x.push_back(static_cast<double>(i * 29 % 61 - 30) / 7);
    w.bytes = packed(w.numbers, c.group, c.bits, {c.outputs, groups, c.group * c.bits / 8});
    w.scales = reals({c.outputs, groups}, scales);
    w.zero_bytes = packed(zeros, groups, c.bits, {c.outputs, (groups * c.bits + 7) / 8});
    const Graph graph = graph_of(model_of_case(c, w, kLevelOfBytes));
    const std::vector<Tensor> inputs = {reals({c.rows, c.inputs}, x)};
    const Tensor y = evaluate(graph, inputs, {.numerics = Numerics::rounded}).value()[0];
    const double largest = std::abs(*std::ranges::max_element(
        known.results, {}, [](double result) { return std::abs(result); }));
    for (size_t i = 0; i < known.results.size(); ++i)
      EXPECT_NEAR(y.real_at(static_cast<int64_t>(i)), known.results[i], 1e-6 * largest) << c.bits;
  }
}

// Rows of zeros have no scale to divide by, nor have those of numbers that are hardly more. A NaN
// stays one. Few rows and many take different ways.
TEST(RoundedProducts, TakeZerosAndNaN) {
  Rng rng(7);
  for (const int64_t rows : {4, 40}) {
    const Case c = {.rows = rows};
    const Weights w = weights_of(c, rng);
    std::vector<double> x(static_cast<size_t>(rows * c.inputs), 0);
    const auto row = [&](int64_t i) { return x.begin() + i * c.inputs; };
    row(1)[0] = std::nan("");
    row(2)[0] = 1e-38, row(2)[1] = -5e-39;
    row(3)[0] = std::numeric_limits<double>::infinity();
    const std::vector<Tensor> inputs = {reals({rows, c.inputs}, x)};
    const Graph graph = graph_of(model_of_case(c, w, kLevelOfBytes));
    Compilation compilation(graph, host_target().value());
    for (const Tensor& y : {evaluate(graph, inputs, {}).value()[0],
                            compilation.executable().value()->run(inputs).value()[0]})
      for (int64_t n = 0; n < c.outputs; ++n) {
        EXPECT_EQ(y.real_at(n), 0);
        EXPECT_TRUE(std::isnan(y.real_at(c.outputs + n)));
        EXPECT_EQ(y.real_at(2 * c.outputs + n), 0);
        EXPECT_TRUE(std::isnan(y.real_at(3 * c.outputs + n)));
      }
  }
}

size_t dots_of(const Graph& graph, DType result) {
  size_t count = 0;
  for (NodeId n : graph.nodes())
    count += is_dot(graph.opcode(n)) && graph.type(graph.result(n)).dtype() == result;
  return count;
}

TEST(RoundedProducts, AreForTheLevelThatAsksForThem) {
  Rng rng(9);
  const Case c;
  const Weights w = weights_of(c, rng);
  for (int64_t level : {0, 1, 2, 3})
    EXPECT_EQ(dots_of(graph_of(model_of_case(c, w, level)), DType::f32), 1U) << level;
  EXPECT_EQ(dots_of(graph_of(model_of_case(c, w, kLevelOfBytes)), DType::i32), 1U);
  const std::string wrong = model_of_case(c, w, 5);
  const auto refused = parse_onnx(std::as_bytes(std::span(wrong)), "test.onnx", ".");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.error().what()), testing::HasSubstr("accuracy_level is 5"));
}

// The sums of groups, [groups, rows, outputs], are many times the product's own result. No array
// is larger than the data, or than the weights as reals.
TEST(RoundedProducts, OfManyRowsHaveNoSumsOfGroups) {
  Rng rng(13);
  for (const int64_t bits : {2, 4, 8})
    for (const int64_t group : {16, 32, 128})
      for (const int64_t rows : {int64_t{1}, group / 2, group / 2 + 1, int64_t{512}}) {
        const Case c = {.bits = bits, .group = group, .inputs = 256, .outputs = 64, .rows = rows};
        const Graph graph = graph_of(model_of_case(c, weights_of(c, rng), kLevelOfBytes));
        const int64_t data = rows * c.inputs * 4, as_reals = c.outputs * c.inputs * 4;
        EXPECT_EQ(dots_of(graph, DType::i32), rows <= group / 2 ? 1U : 0U) << rows;
        for (NodeId n : graph.nodes()) {
          const Type type = graph.type(graph.result(n));
          EXPECT_LE(type.static_elements() * hone::bits(type.dtype()) / 8, std::max(data, as_reals))
              << type.to_string();
        }
      }
  const Case c = {.rows = 2};
  const Graph open = graph_of(model_of_case(c, weights_of(c, rng), kLevelOfBytes, true));
  EXPECT_EQ(dots_of(open, DType::f32), 1U) << "rows without a bound";
}

TEST(RoundedProducts, WantARealZeroPointForEachGroup) {
  Rng rng(19);
  const Case c = {.zeros = Case::Zeros::reals};
  Weights w = weights_of(c, rng);
  w.zero_reals = reals({c.groups()}, Numbers(static_cast<size_t>(c.groups()), 1));
  for (const int64_t level : {int64_t{0}, kLevelOfBytes}) {
    const std::string wrong = model_of_case(c, w, level);
    const auto refused = parse_onnx(std::as_bytes(std::span(wrong)), "test.onnx", ".");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.error().what()),
                testing::HasSubstr("operand 3 is f32[3], want 3 reals for each of 5 columns"));
  }
}

Graph written_and_read(const Graph& graph) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "model.onnx";
  const auto saved = save_onnx(path, model_of(graph), {});
  EXPECT_TRUE(saved.ok()) << saved.error().what();
  return *single_graph(load_onnx(path, {}).value());
}

// They are written as they were read, and give the same bits again.
TEST(RoundedProducts, AreWrittenAsTheyWereRead) {
  Rng rng(11);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const Case c = random_case(rng);
    // Many rows take weights as reals. ONNX has no numbers of 2 bits to subtract a real from.
    if (c.bits == 2 && c.zeros == Case::Zeros::reals && 2 * c.rows > c.group) continue;
    const Weights w = weights_of(c, rng);
    const Graph graph = graph_of(model_of_case(c, w, kLevelOfBytes));
    const Graph again = written_and_read(graph);
    EXPECT_EQ(dots_of(again, DType::i32), dots_of(graph, DType::i32));
    if (dots_of(graph, DType::i32) == 1) EXPECT_EQ(again.node_count(), graph.node_count());
    const Tensor x = data_of(c, rng);
    const auto result = [&](const Graph& one) {
      return evaluate(one, std::vector{x}, {.numerics = Numerics::rounded}).value()[0];
    };
    EXPECT_TRUE(result(again).same_bytes(result(graph)));
  }
}

// ---- What is almost such a product --------------------------------------------------------------

void expect_same_when_written(const Graph& graph, uint64_t seed) {
  const Graph again = written_and_read(graph);
  const std::vector<Tensor> inputs = random_inputs(graph, seed).value();
  ASSERT_EQ(again.inputs().size(), graph.inputs().size());
  const auto result = [&](const Graph& one) {
    return evaluate(one, inputs, {.numerics = Numerics::rounded}).value()[0];
  };
  EXPECT_TRUE(result(again).same_bytes(result(graph)));
}

// The scales of the data are those of another input.
TEST(RoundedProducts, AreWrittenWithBothInputs) {
  Rng rng(15);
  const Case c = {.bits = 8, .group = 16, .inputs = 16, .outputs = 2, .rows = 2};
  const Weights w = weights_of(c, rng);
  Builder b("g");
  const Value x = b.parameter("x", DType::f32, {c.rows, c.inputs});
  (void)b.parameter("other", DType::f32, {c.rows, c.inputs});
  const Graph plain =
      b.finish({product_of_rounded(x, {b.constant(w.bytes), b.constant(w.scales), {}, c.bits})})
          .value();
  std::string text = std::regex_replace(print(plain), std::regex("(%\\w+ = reshape) %x( .*)"),
                                        "$&\n  %scaled_by = reshape %other$2");
  text = std::regex_replace(text, std::regex("= abs %\\w+"), "= abs %scaled_by");
  const Result<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph.ok()) << graph.error().what() << "\n" << text;
  ASSERT_NE(print(*graph), print(plain));
  expect_same_when_written(*graph, 1);
}

// The fields of a file have room for zero points of as many bits as the numbers have.
TEST(RoundedProducts, KeepZeroPointsThatHaveMoreBits) {
  Rng rng(17);
  for (const int64_t zero : {int64_t{7}, int64_t{15}, int64_t{16}, int64_t{-1}}) {
    SCOPED_TRACE(zero);
    const Case c = {.inputs = 64, .outputs = 2};
    const Weights w = weights_of(c, rng);
    Builder b("g");
    const Value x = b.parameter("x", DType::f32, {c.rows, c.inputs});
    const Value zeros = b.constant(integers({2, 2}, {3, zero, zero, 5}, DType::i32));
    const Graph graph =
        b.finish(
             {product_of_rounded(x, {b.constant(w.bytes), b.constant(w.scales), zeros, c.bits})})
            .value();
    expect_same_when_written(graph, 2);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
