#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/rng.h"
#include "base/temporary_files.h"
#include "front/decoder/blocks.h"
#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"
#include "ir/functional.h"
#include "ir/reference/evaluate_model.h"
#include "tests/front/gguf_file.h"

// Products by weights of few bits are written as MatMulNBits, and read again with equal results.

namespace hone::HONE_FILE {
namespace {

using Counts = std::map<std::string, int>;

struct Written {
  Counts ops;
  std::map<std::string, int64_t> attributes;  // of the MatMulNBits
  int operands = 0;                           // likewise
  Model again;
};

Written written(const Graph& graph, const ExportOptions& options = {}) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "model.onnx";
  const auto saved = save_onnx(path, model_of(graph), options);
  EXPECT_TRUE(saved.ok()) << saved.error().to_string();
  onnx::ModelProto proto;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(proto.ParseFromIstream(&file));
  Written result;
  for (const onnx::NodeProto& node : proto.graph().node()) {
    ++result.ops[node.op_type()];
    if (node.op_type() != "MatMulNBits") continue;
    EXPECT_EQ(node.domain(), "com.microsoft");
    result.operands = node.input_size();
    for (const onnx::AttributeProto& attribute : node.attribute())
      result.attributes[attribute.name()] = attribute.i();
  }
  Result<Model> model = load_onnx(path, {});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (model.ok()) result.again = std::move(*model);
  return result;
}

std::vector<Tensor> results(const Graph& graph, const std::vector<Tensor>& inputs) {
  return evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
}
std::vector<Tensor> results(const Model& model, const std::vector<Tensor>& inputs) {
  return evaluate_model(model, inputs, {.numerics = Numerics::rounded}).value();
}

Tensor whole_numbers(Rng& rng, Type type, int64_t low, int64_t high) {
  std::vector<double> all;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    all.push_back(static_cast<double>(rng.between(low, high)));
  return Tensor::from_reals(type, all);
}

// Scales are powers of two and all numbers are small, so sums are exact in any order.
Tensor powers_of_two(Rng& rng, Type type) {
  std::vector<double> all;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    all.push_back(std::ldexp(1, static_cast<int>(rng.between(-3, 3))));
  return Tensor::from_reals(type, all);
}

struct Case {
  DType dtype = DType::i4;
  int64_t inputs = 40, outputs = 5, block = 16;  // block 0: a scale for each output
  bool is_transposed = false;                    // weights are [outputs, inputs]
  bool has_zeros = false;
  Dims rows = {3};

  std::string text() const {
    return fmt::format("{} {}x{} block {} {}{}", name(dtype), inputs, outputs, block,
                       is_transposed ? "transposed " : "", has_zeros ? "zeros" : "");
  }
};

Graph graph_of(const Case& c, Rng& rng) {
  Builder b("g");
  const Dims dims = c.is_transposed ? Dims{c.outputs, c.inputs} : Dims{c.inputs, c.outputs};
  const int summed = c.is_transposed ? 1 : 0;
  Dims scales = dims;
  scales[static_cast<size_t>(summed)] = c.block == 0 ? 1 : (c.inputs + c.block - 1) / c.block;
  if (c.block == 0) scales = {c.outputs};
  const int64_t half = int64_t{1} << (bits(c.dtype) - 1);
  const int64_t low = is_signed(c.dtype) ? -half : 0, high = low + 2 * half - 1;
  std::vector<Value> operands = {
      b.constant(whole_numbers(rng, Type::get(c.dtype, dims), low, high)),
      b.constant(powers_of_two(rng, Type::get(DType::f32, scales)))};
  if (c.has_zeros)
    operands.push_back(b.constant(whole_numbers(rng, Type::get(c.dtype, scales), low, high)));
  const Value w = b.op(Opcode::dequantize, operands,
                       {{"axis", int64_t{c.block == 0 ? 1 - summed : summed}}, {"block", c.block}});
  Dims data = c.rows;
  data.push_back(c.inputs);
  const Value x = b.parameter("x", Type::get(DType::f32, data));
  return b.finish({dot_general(x, w, {}, {}, {x.rank() - 1}, {summed})}).value();
}

void expect_equal_again(const Graph& graph, const Written& file, Rng& rng) {
  const std::vector<Tensor> inputs = {whole_numbers(rng, graph.type(graph.inputs()[0]), -4, 4)};
  EXPECT_TRUE(results(file.again, inputs)[0].same_bytes(results(graph, inputs)[0]));
}

TEST(OnnxExportPacked, ProductsAreEqualWhenTheyAreReadAgain) {
  Rng rng(3);
  constexpr DType kTypes[] = {DType::i8, DType::u8, DType::i4, DType::u4, DType::i2, DType::u2};
  constexpr int64_t kBlocks[] = {0, 16, 32, 48, 64, 128};
  for (int i = 0; i < 60; ++i) {
    Case c = {.dtype = kTypes[i % 6], .inputs = rng.between(1, 150), .outputs = rng.between(1, 9)};
    c.block = kBlocks[rng.below(6)];
    c.is_transposed = rng.chance(0.5);
    c.has_zeros = rng.chance(0.5);
    if (rng.chance(0.3)) c.rows = {2, 3};
    SCOPED_TRACE(c.text());
    const Graph graph = graph_of(c, rng);
    const Written file = written(graph);
    EXPECT_EQ(file.ops, (Counts{{"MatMulNBits", 1}}));
    EXPECT_EQ(file.attributes.at("bits"), bits(c.dtype));
    EXPECT_EQ(file.attributes.at("K"), c.inputs);
    EXPECT_EQ(file.attributes.at("N"), c.outputs);
    expect_equal_again(graph, file, rng);
    // A file that was read is written as it was.
    const Written twice = written(*single_graph(file.again));
    EXPECT_EQ(twice.ops, file.ops);
    EXPECT_EQ(twice.operands, file.operands);
    expect_equal_again(graph, twice, rng);
  }
}

TEST(OnnxExportPacked, BlocksAreThoseOfTheScales) {
  Rng rng(4);
  const auto block_of = [&](int64_t block, int64_t inputs) {
    return written(graph_of({.inputs = inputs, .block = block}, rng)).attributes.at("block_size");
  };
  EXPECT_EQ(block_of(32, 100), 32);
  EXPECT_EQ(block_of(48, 100), 16);   // the largest power of 2 that divides it
  EXPECT_EQ(block_of(48, 40), 64);    // one block
  EXPECT_EQ(block_of(0, 20), 32);     // likewise
  EXPECT_EQ(block_of(0, 1000), 128);  // each has the same scale
}

TEST(OnnxExportPacked, ZeroPointsInTheMiddleAreLeftOut) {
  Rng rng(5);
  EXPECT_EQ(written(graph_of({.dtype = DType::i4}, rng)).operands, 3);
  EXPECT_EQ(written(graph_of({.dtype = DType::u4}, rng)).operands, 4);  // 0, and not 8
  EXPECT_EQ(written(graph_of({.dtype = DType::i4, .has_zeros = true}, rng)).operands, 4);
}

TEST(OnnxExportPacked, OtherProductsStayAsTheyAre) {
  Rng rng(6);
  // Groups of 24 have no power of 2 from 16 on.
  EXPECT_FALSE(written(graph_of({.block = 24}, rng)).ops.contains("MatMulNBits"));
  EXPECT_FALSE(
      written(graph_of({}, rng), {.opset = 21, .primitives = true}).ops.contains("MatMulNBits"));
  // Bytes by bytes.
  Builder b;
  const Value scale = b.scalar(DType::f32, 0.5);
  const Value x =
      b.op(Opcode::dequantize, {b.parameter("x", Type::get(DType::u8, {2, 16})), scale});
  const Value w =
      b.op(Opcode::dequantize,
           {b.constant(whole_numbers(rng, Type::get(DType::i8, {16, 3}), -9, 9)), scale});
  const Written file = written(b.finish({dot_general(x, w, {}, {}, {1}, {0})}).value());
  EXPECT_EQ(file.ops, (Counts{{"DequantizeLinear", 2}, {"MatMul", 1}}));
}

// Results are the weights themselves, by rows of the identity.
TEST(OnnxExportPacked, BlocksOfGgufFilesStayExactWhereTheyCan) {
  struct Format {
    BlockFormat format;
    uint32_t type;
    int64_t bits, block;  // 0: f16
  };
  constexpr Format kAll[] = {
      {BlockFormat::q4_0, gguf::kQ4_0, 4, 32}, {BlockFormat::q4_1, gguf::kQ4_1, 0, 0},
      {BlockFormat::q5_0, gguf::kQ5_0, 8, 32}, {BlockFormat::q5_1, gguf::kQ5_1, 0, 0},
      {BlockFormat::q8_0, gguf::kQ8_0, 8, 32}, {BlockFormat::q4_k, gguf::kQ4_K, 0, 0},
      {BlockFormat::q5_k, gguf::kQ5_K, 0, 0},  {BlockFormat::q6_k, gguf::kQ6_K, 8, 16}};
  constexpr int64_t kOutputs = 3, kInputs = 512;
  std::vector<double> identity(kInputs * kInputs);
  for (size_t i = 0; i < kInputs; ++i) identity[i * kInputs + i] = 1;
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f32, {kInputs, kInputs}), identity)};
  for (const Format& each : kAll) {
    const BlockLayout& layout = layout_of(each.format);
    SCOPED_TRACE(layout.name);
    const std::string bytes = gguf::random_bytes(each.type, kOutputs * kInputs, 1, 9);
    Builder b;
    const Value blocks = b.constant(
        Tensor::copy_of(Type::get(DType::u8, {kOutputs, kInputs / layout.elements * layout.bytes}),
                        std::as_bytes(std::span(bytes))),
        "w");
    const Value x = b.parameter("x", inputs[0].type());
    const Graph graph = b.finish({product_of_blocks(x, blocks, each.format)}).value();
    const Written file = written(graph);
    const Tensor expected = results(graph, inputs)[0], actual = results(file.again, inputs)[0];
    if (each.bits == 0) {
      EXPECT_EQ(file.ops, (Counts{{"Cast", 1}, {"Gemm", 1}}));
      for (int64_t i = 0; i < expected.elements(); ++i)
        ASSERT_NEAR(actual.real_at(i), expected.real_at(i),
                    std::abs(expected.real_at(i)) * 0x1p-11 + 1e-7);
    } else {
      EXPECT_EQ(file.ops, (Counts{{"MatMulNBits", 1}}));
      EXPECT_EQ(file.attributes.at("bits"), each.bits);
      EXPECT_EQ(file.attributes.at("block_size"), each.block);
      EXPECT_TRUE(actual.same_bytes(expected));
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
