#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Pointwise;

const NodeOptions kContributed = {.domain = "com.microsoft"};

testing::Matcher<const Numbers&> near(const Numbers& expected, double error = 1e-5) {
  return Pointwise(testing::DoubleNear(error), expected);
}
Tensor bytes(const Ints& dims, const Ints& values) { return integers(dims, values, DType::u8); }
Tensor scalar(double value) { return reals({}, {value}); }
Numbers mapped(const Numbers& x, const std::function<double(double)>& f) {
  Numbers y;
  for (double v : x) y.push_back(f(v));
  return y;
}
Tensor run(std::string_view op, const std::vector<Operand>& operands,
           const Attributes& attributes = {}) {
  return run_node(op, 1, operands, attributes, kContributed);
}
std::string error_of(std::string_view op, const std::vector<Operand>& operands,
                     const Attributes& attributes = {}) {
  return import_error(op, 1, operands, attributes, kContributed);
}

double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double tanh_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// ---- Activations --------------------------------------------------------------------------------

TEST(OnnxContributedFused, Gelus) {
  const Numbers values = {-2, -0.5, 0, 1};
  Tensor x = reals({2, 2}, values), bias = reals({2}, {1, -1});
  const Numbers shifted = {-1, -1.5, 1, 0};
  EXPECT_THAT(numbers(run("Gelu", {x})), near(mapped(values, gelu)));
  EXPECT_THAT(numbers(run("BiasGelu", {x, bias})), near(mapped(shifted, gelu)));
  EXPECT_THAT(numbers(run("FastGelu", {x})), near(mapped(values, tanh_gelu)));
  EXPECT_THAT(numbers(run("FastGelu", {x, bias})), near(mapped(shifted, tanh_gelu)));
  EXPECT_THAT(numbers(run("QuickGelu", {x})),
              near(mapped(values, [](double v) { return v * sigmoid(1.702 * v); })));
  EXPECT_THAT(numbers(run("BiasSplitGelu", {reals({1, 1, 4}, values), reals({4}, {1, 1, 1, 1})})),
              near({-1 * gelu(1), 0.5 * gelu(2)}));
}

TEST(OnnxContributedFused, BiasSoftmaxRunsOverAllDimsFromTheAxisOn) {
  Tensor x = reals({1, 2, 2}, {0, 0, 0, 0}), bias = reals({1, 2}, {0, std::log(3.0)});
  EXPECT_THAT(numbers(run("BiasSoftmax", {x, bias}, {{"is_inner_broadcast", 0}})),
              near({0.125, 0.375, 0.125, 0.375}));
  EXPECT_THAT(numbers(run("BiasSoftmax", {x, bias}, {{"axis", 2}, {"is_inner_broadcast", 0}})),
              near({0.25, 0.75, 0.25, 0.75}));
}

// ---- Products -----------------------------------------------------------------------------------

TEST(OnnxContributedFused, MatMulTransposes) {
  Tensor a = reals({2, 2}, {1, 2, 3, 4}), b = reals({2, 2}, {0, 1, 1, 1});
  EXPECT_EQ(numbers(run("FusedMatMul", {a, b}, {{"alpha", 2.0}})), Numbers({4, 6, 8, 14}));
  EXPECT_EQ(numbers(run("FusedMatMul", {a, b}, {{"transA", 1}})), Numbers({3, 4, 4, 6}));
  EXPECT_EQ(numbers(run("TransposeMatMul", {b, a}, {{"transB", 1}})), Numbers({2, 4, 3, 7}));
  // [rows, batch, columns]: batch 0 is [[1, 2], [5, 6]], batch 1 [[3, 4], [7, 8]].
  Tensor batches = reals({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(numbers(run("FusedMatMul", {batches, b}, {{"transBatchA", 1}})),
            Numbers({2, 3, 6, 11, 4, 7, 8, 15}));
  EXPECT_EQ(numbers(run("FusedMatMul", {batches, b}, {{"transBatchA", 1}, {"transA", 1}})),
            Numbers({5, 6, 6, 8, 7, 10, 8, 12}));
}

TEST(OnnxContributedFused, GemmAndConvActivate) {
  Tensor a = reals({1, 2}, {1, -2}), b = reals({2, 2}, {1, 0, 0, 1}), c = reals({2}, {1, 1});
  Attributes leaky = {{"activation", "LeakyRelu"}, {"activation_alpha", 0.5}, {"beta", 2.0}};
  EXPECT_EQ(numbers(run("FusedGemm", {a, b, c}, leaky)), Numbers({3, 0}));
  EXPECT_EQ(numbers(run("FusedGemm", {a, b}, leaky)), Numbers({1, -1}));
  Tensor x = reals({1, 1, 3}, {1, -2, 3}), w = reals({1, 1, 1}, {2}), bias = reals({1}, {1});
  Tensor z = reals({1, 1, 3}, {0, 0, -10});
  EXPECT_EQ(numbers(run("FusedConv", {x, w, bias}, {{"activation", "Relu"}})), Numbers({3, 0, 7}));
  EXPECT_EQ(numbers(run("FusedConv", {x, w, bias, z},
                        {{"activation", "Clip"}, {"activation_params", Numbers{-2.5, 2}}})),
            Numbers({2, -2.5, -2.5}));
  EXPECT_EQ(numbers(run("NhwcFusedConv", {reals({1, 3, 1}, {1, -2, 3}), w, bias})),
            Numbers({3, -3, 7}));
  EXPECT_THAT(error_of("FusedConv", {x, w, bias}, {{"activation", "Clip"}}),
              HasSubstr("Clip lacks parameter 0"));
  EXPECT_THAT(error_of("FusedConv", {x, w, bias}, {{"activation", "Wave"}}),
              HasSubstr("the activation 'Wave'"));
}

// ---- Norms --------------------------------------------------------------------------------------

// Rows of two with mean 0 and variance 1 after the norm: the smaller gets -1, the larger 1.
TEST(OnnxContributedNorm, SkipsAndBiasesAreAdded) {
  Tensor x = reals({1, 2, 2}, {1, 2, 5, 3}), skip = reals({1, 2, 2}, {0, 2, 0, 0});
  Tensor gamma = reals({2}, {1, 10}), beta = reals({2}, {0, 1}), bias = reals({2}, {1, 0});
  auto y = run_outputs("SkipLayerNormalization", 1, {x, skip, gamma, beta, bias}, {},
                       {.domain = "com.microsoft", .outputs = 1});
  // Sums [2, 4] and [6, 3].
  EXPECT_THAT(numbers(y[0]), near({-1, 11, 1, -9}));
  auto simple = [](double a, double b) { return std::sqrt((a * a + b * b) / 2); };
  EXPECT_THAT(numbers(run("SkipSimplifiedLayerNormalization", {x, skip, gamma})),
              near({1 / simple(1, 4), 40 / simple(1, 4), 5 / simple(5, 3), 30 / simple(5, 3)}));
  for (const NodeOptions& where : {NodeOptions{}, kContributed}) {
    EXPECT_THAT(numbers(run_node("SimplifiedLayerNormalization", 1, {x, gamma},
                                 {{"epsilon", 0.0}, {"axis", -1}}, where)),
                near({1 / simple(1, 2), 20 / simple(1, 2), 5 / simple(5, 3), 30 / simple(5, 3)}));
    EXPECT_THAT(
        numbers(run_node("LayerNormalization", 1, {x, gamma, beta}, {{"epsilon", 0.0}}, where)),
        near({-1, 11, 1, -9}));
  }
}

TEST(OnnxContributedNorm, EmbeddingsAreSummed) {
  Tensor ids = integers({1, 2}, {2, 0}, DType::i32), types = integers({1, 2}, {0, 1}, DType::i32);
  Tensor words = reals({3, 2}, {0, 1, 9, 9, 4, 0}), places = reals({3, 2}, {1, 0, 0, 1, 7, 7});
  Tensor kinds = reals({2, 2}, {0, 0, 5, 1}), one = reals({2}, {1, 1}), zero = reals({2}, {0, 0});
  Tensor mask = integers({1, 2}, {1, 0}, DType::i32);
  auto y =
      run_outputs("EmbedLayerNormalization", 1, {ids, types, words, places, kinds, one, zero, mask},
                  {}, {.domain = "com.microsoft", .outputs = 3});
  EXPECT_EQ(numbers(y[2]), Numbers({5, 0, 5, 3}));
  EXPECT_THAT(numbers(y[0]), near({1, -1, 1, -1}));
  EXPECT_EQ(numbers(y[1]), Numbers({1}));
  // Positions of their own.
  Tensor order = integers({1, 2}, {2, 2}, DType::i32);
  y = run_outputs("EmbedLayerNormalization", 1,
                  {ids, none(), words, places, none(), one, zero, none(), order}, {},
                  {.domain = "com.microsoft", .outputs = 3});
  EXPECT_EQ(numbers(y[2]), Numbers({11, 7, 7, 8}));
}

TEST(OnnxContributedNorm, GroupsOfChannels) {
  // Channels last: groups {1, 3} and {10, 10 + 2}.
  Tensor x = reals({1, 1, 1, 4}, {1, 3, 10, 12}), one = reals({4}, {1, 1, 1, 2});
  Tensor zero = reals({4}, {0, 0, 0, 0});
  Attributes a = {{"groups", 2}, {"activation", 0}, {"epsilon", 0.0}};
  EXPECT_THAT(numbers(run("GroupNorm", {x, one, zero}, a)), near({-1, 1, -1, 2}));
  a[1].second = 1;
  EXPECT_THAT(numbers(run("GroupNorm", {x, one, zero}, a)),
              near({-sigmoid(-1), sigmoid(1), -sigmoid(-1), 2 * sigmoid(2)}));
  a[1].second = 0;
  EXPECT_THAT(numbers(run("SkipGroupNorm", {x, one, zero, reals({1, 4}, {0, -4, 0, 0})}, a)),
              near({1, -1, -1, 2}));
  EXPECT_THAT(error_of("GroupNorm", {x, one, zero}, {{"groups", 0}, {"activation", 0}}),
              HasSubstr("groups is 0"));
}

// ---- Quantized ----------------------------------------------------------------------------------

TEST(OnnxContributedQuantized, Elementwise) {
  Tensor a = bytes({3}, {0, 10, 20}), b = bytes({1}, {6}), zero = bytes({}, {10});
  Tensor half = scalar(0.5), one = scalar(1), none_zero = bytes({}, {0});
  // a is -5, 0, 5; b is 6.
  std::vector<Operand> operands = {a, half, zero, b, one, none_zero, half, zero};
  EXPECT_EQ(numbers(run("QLinearAdd", operands)), Numbers({12, 22, 32}));
  EXPECT_EQ(numbers(run("QLinearMul", operands)), Numbers({0, 10, 70}));
  EXPECT_EQ(numbers(run("QLinearLeakyRelu", {a, half, zero, half, zero}, {{"alpha", 0.2}})),
            Numbers({8, 10, 20}));
  EXPECT_EQ(numbers(run("QLinearSigmoid", {a, half, zero, scalar(0.01), none_zero})),
            Numbers({1, 50, 99}));
  Tensor which = integers({3}, {1, 0, 1}, DType::boolean);
  EXPECT_EQ(numbers(run("QLinearWhere",
                        {which, a, half, zero, b, one, none_zero, half, bytes({}, {20})})),
            Numbers({10, 32, 30}));
  EXPECT_EQ(
      numbers(run("QLinearConcat", {half, zero, a, half, zero, b, one, none_zero}, {{"axis", 0}})),
      Numbers({0, 10, 20, 22}));
  EXPECT_THAT(error_of("QLinearConcat", {half, zero, a, half}, {{"axis", 0}}),
              HasSubstr("4 operands"));
}

TEST(OnnxContributedQuantized, SoftmaxAndAverages) {
  Tensor x = bytes({1, 2, 2}, {1, 1, 3, 5}), one = scalar(1), zero = bytes({}, {1});
  Tensor part = scalar(0.01);
  std::vector<Operand> operands = {x, one, zero, part, bytes({}, {0})};
  EXPECT_EQ(numbers(run("QLinearSoftmax", operands, {{"opset", 13}, {"axis", -1}})),
            Numbers({50, 50, 12, 88}));
  // Over all four: e^0, e^0, e^2, e^4 of their sum 63.99.
  EXPECT_EQ(numbers(run("QLinearSoftmax", operands, {{"opset", 12}})), Numbers({2, 2, 12, 85}));
  std::vector<Operand> plain = {x, one, zero, one, bytes({}, {0})};
  EXPECT_EQ(numbers(run("QLinearGlobalAveragePool", plain)), Numbers({0, 3}));
  EXPECT_EQ(numbers(run("QLinearGlobalAveragePool", plain, {{"channels_last", 1}})),
            Numbers({1, 2}));
  EXPECT_EQ(numbers(run("QLinearReduceMean", plain, {{"axes", Ints{1}}, {"keepdims", 0}})),
            Numbers({1, 2}));
}

TEST(OnnxContributedQuantized, PoolsWithChannelsLast) {
  Tensor x = bytes({1, 3, 1}, {1, 3, 7}), one = scalar(1), zero = bytes({}, {1});
  std::vector<Operand> operands = {x, one, zero, one, bytes({}, {10})};
  Attributes at = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}, {"channels_last", 1}};
  // Less the zero point: 0, 2, 6.
  EXPECT_EQ(numbers(run("QLinearAveragePool", operands, at)), Numbers({10, 11, 14}));
  at.emplace_back("count_include_pad", 1);
  operands[0] = bytes({1, 3, 1}, {5, 3, 7});
  EXPECT_EQ(numbers(run("QLinearAveragePool", operands, at)), Numbers({12, 13, 14}));
  Tensor high = integers({1, 3, 2}, {1, -9, -3, 4, 0, 6}, DType::i8);
  EXPECT_EQ(numbers(run("NhwcMaxPool", {high}, {{"kernel_shape", Ints{2}}})),
            Numbers({1, 4, 0, 6}));
}

TEST(OnnxContributedQuantized, Products) {
  // a - 1 is [1, 2]; b - [0, 1] is [[1, 2], [3, 4]] with scales 1 and 2.
  Tensor a = bytes({1, 2}, {2, 3}), b = bytes({2, 2}, {1, 3, 3, 5});
  Tensor one = bytes({}, {1}), zeros = bytes({2}, {0, 1}), scales = reals({2}, {1, 2});
  Tensor bias = reals({2}, {100, 200});
  EXPECT_EQ(numbers(run("MatMulIntegerToFloat", {a, b, scalar(0.5), scales, one, zeros, bias})),
            Numbers({103.5, 210}));
  Tensor c = integers({2}, {1, 0}, DType::i32);
  EXPECT_EQ(numbers(run("QGemm", {a, scalar(0.5), one, b, scales, zeros, c})), Numbers({4, 10}));
  EXPECT_EQ(
      numbers(run("QGemm", {a, scalar(0.5), one, b, scales, zeros, c, scalar(2), bytes({}, {7})},
                  {{"alpha", 2.0}})),
      Numbers({11, 17}));
  // 255 is a's largest number, so that its grid is whole.
  EXPECT_THAT(
      numbers(run("DynamicQuantizeMatMul", {reals({1, 2}, {255, 1}), b, scales, zeros, bias})),
      near({255 + 3 + 100, 2 * (510 + 4) + 200}, 1e-3));
}

TEST(OnnxContributedQuantized, AttentionOfIntegers) {
  // One head, one position: the result is the value, x times the last column plus bias.
  Tensor x = bytes({1, 1, 2}, {3, 5}), w = bytes({2, 3}, {1, 1, 2, 1, 1, 4});
  EXPECT_THAT(numbers(run("QAttention",
                          {x, w, reals({3}, {0, 0, 0.5}), scalar(0.5), scalar(2), none(),
                           bytes({}, {1}), bytes({}, {1})},
                          {{"num_heads", 1}})),
              near({(1.0 * 2 + 2 * 6) + 0.5}));
}

TEST(OnnxContributedQuantized, QuantizesAlongItsAxis) {
  Tensor x = reals({2, 2}, {1, 2, 3, 4}), scales = reals({2}, {1, 2}), zeros = bytes({2}, {0, 1});
  EXPECT_EQ(numbers(run("QuantizeLinear", {x, scales, zeros}, {{"axis", 0}})),
            Numbers({1, 2, 3, 3}));
  EXPECT_EQ(
      numbers(run("DequantizeLinear", {bytes({2, 2}, {1, 2, 3, 3}), scales, zeros}, {{"axis", 0}})),
      Numbers({1, 2, 4, 4}));
}

// ---- Weights of a few bits ----------------------------------------------------------------------

// Weights of N columns, K = 40 rows in blocks of 16: two whole ones and a half.
struct Packed {
  int64_t bits;
  Ints weights, bytes, zeros, zero_bytes;
  Numbers scales = {0.5, 1, 2, 1, 0.25, 4};

  explicit Packed(int64_t b) : bits(b) {
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t k = 0; k < 48; ++k) weights.push_back((c * 5 + k * 7) % (int64_t{1} << bits));
      for (int64_t i = 0; i < 3; ++i) zeros.push_back((c + i * 3) % (int64_t{1} << bits));
    }
    bytes = packed(weights, 48);
    zero_bytes = packed(zeros, 3);
  }
  Ints packed(const Ints& numbers, size_t row) const {
    const size_t per_byte = static_cast<size_t>(8 / bits);
    Ints result;
    for (size_t start = 0; start < numbers.size(); start += row)
      for (size_t i = 0; i < row; i += per_byte) {
        int64_t byte = 0;
        for (size_t j = i; j < std::min(row, i + per_byte); ++j)
          byte |= numbers[start + j] << (static_cast<int64_t>(j - i) * bits);
        result.push_back(byte);
      }
    return result;
  }
  // x times the weights, for one row x.
  Numbers product(const Numbers& x, const std::function<double(size_t)>& zero) const {
    Numbers y;
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (size_t k = 0; k < 40; ++k) {
        size_t block = c * 3 + k / 16;
        sum += x[k] * (static_cast<double>(weights[c * 48 + k]) - zero(block)) * scales[block];
      }
      y.push_back(sum);
    }
    return y;
  }
};

TEST(OnnxMatMulNBits, UnpacksBlocks) {
  Numbers x;
  for (int i = 0; i < 40; ++i) x.push_back(i % 5 - 2);
  for (int64_t bits : {2, 4, 8}) {
    Packed p(bits);
    Tensor a = reals({1, 1, 40}, x), scales = reals({2, 3}, p.scales);
    Tensor b = bytes({2, 3, 2 * bits}, p.bytes);
    Attributes at = {
        {"K", 40}, {"N", 2}, {"bits", bits}, {"block_size", 16}, {"accuracy_level", 3}};
    Numbers middle = p.product(x, [&](size_t) { return 1 << (bits - 1); });
    EXPECT_THAT(numbers(run("MatMulNBits", {a, b, scales}, at)), near(middle, 1e-3));
    EXPECT_THAT(numbers(run("MatMulNBits", {a, constant(b), scales}, at)), near(middle, 1e-3));
    Numbers given = p.product(x, [&](size_t i) { return static_cast<double>(p.zeros[i]); });
    Tensor zeros = bytes({2, std::ssize(p.zero_bytes) / 2}, p.zero_bytes);
    EXPECT_THAT(numbers(run("MatMulNBits", {a, constant(b), scales, constant(zeros)}, at)),
                near(given, 1e-3));
    EXPECT_THAT(numbers(run("MatMulNBits", {a, b, reals({6}, p.scales), zeros}, at)),
                near(given, 1e-3));
    Numbers odd = p.product(x, [](size_t i) { return 0.5 + static_cast<double>(i); });
    EXPECT_THAT(numbers(run("MatMulNBits",
                            {a, constant(b), scales, reals({2, 3}, {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}),
                             none(), reals({2}, {0, 0})},
                            at)),
                near(odd, 1e-3));
  }
}

TEST(OnnxMatMulNBits, ChecksItsLayout) {
  Packed p(4);
  Tensor a = reals({1, 40}, Numbers(40, 1)), b = bytes({2, 3, 8}, p.bytes);
  Tensor scales = reals({6}, p.scales);
  auto with = [](int64_t k, int64_t block, int64_t bits) {
    return Attributes{{"K", k}, {"N", 2}, {"bits", bits}, {"block_size", block}};
  };
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales}, with(40, 24, 4)), HasSubstr("power of 2"));
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales}, with(40, 16, 3)), HasSubstr("3 bits"));
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales}, with(41, 16, 4)), HasSubstr("K is 41"));
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales}, with(40, 32, 4)), HasSubstr("the scales"));
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales}, with(int64_t{1} << 40, 16, 4)),
              HasSubstr("K is 1099511627776"));
  Ints groups;
  for (int64_t i = 0; i < 40; ++i) groups.push_back(i / 16);
  Tensor plain = integers({40}, groups, DType::i32);
  EXPECT_EQ(error_of("MatMulNBits", {a, b, scales, none(), constant(plain)}, with(40, 16, 4)), "");
  groups[0] = 2;
  Tensor mixed = integers({40}, groups, DType::i32);
  EXPECT_THAT(error_of("MatMulNBits", {a, b, scales, none(), constant(mixed)}, with(40, 16, 4)),
              HasSubstr("row 0 in group 2"));
}

// Rows of 40 numbers in blocks of 16, several to a byte, and what the reader makes of them.
class BlockTable {
 public:
  explicit BlockTable(int64_t bits) : bits_(bits) {
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t k = 0; k < 48; ++k) weights_.push_back((r * 5 + k * 7) % (int64_t{1} << bits));
      for (int64_t i = 0; i < 3; ++i) {
        scales_.push_back(0.25 * static_cast<double>(1 + i + 3 * r));
        zeros_.push_back((r + i * 3) % (int64_t{1} << bits));
      }
    }
  }
  Tensor data() const { return in_bytes(weights_, 48); }
  Tensor scales() const { return reals({3, 3}, scales_); }
  Tensor zeros() const { return in_bytes(zeros_, 3); }
  Tensor wide(DType dtype) const { return integers({3, 48}, weights_, dtype); }
  Tensor wide_zeros(DType dtype) const { return integers({3, 3}, zeros_, dtype); }
  Numbers rows(const Ints& indices, const std::function<double(size_t)>& zero) const {
    Numbers all;
    for (int64_t index : indices)
      for (size_t k = 0; k < 48; ++k) {
        const size_t row = static_cast<size_t>(index < 0 ? index + 3 : index);
        const size_t block = row * 3 + k / 16;
        all.push_back((static_cast<double>(weights_[row * 48 + k]) - zero(block)) * scales_[block]);
      }
    return all;
  }
  double zero(size_t block) const { return static_cast<double>(zeros_[block]); }

 private:
  Tensor in_bytes(const Ints& values, size_t row) const {
    Ints all;
    const auto each = static_cast<size_t>(8 / bits_);
    for (size_t start = 0; start < values.size(); start += row)
      for (size_t i = 0; i < row; i += each) {
        int64_t byte = 0;
        for (size_t j = i; j < std::min(row, i + each); ++j)
          byte |= values[start + j] << (static_cast<int64_t>(j - i) * bits_);
        all.push_back(byte);
      }
    return bytes({3, std::ssize(all) / 3}, all);
  }

  int64_t bits_;
  Ints weights_, zeros_;
  Numbers scales_;
};

TEST(OnnxGatherBlockQuantized, LooksUpRowsOfBytes) {
  const Ints indices = {2, -3, 1};
  const Tensor at = integers({1, 3}, indices);
  for (int64_t bits : {2, 4, 8}) {
    const BlockTable t(bits);
    const Attributes how = {
        {"bits", bits}, {"block_size", 16}, {"gather_axis", 0}, {"quantize_axis", 1}};
    const Numbers middle = t.rows(indices, [&](size_t) { return 1 << (bits - 1); });
    const Numbers given = t.rows(indices, [&](size_t block) { return t.zero(block); });
    for (const bool is_constant : {false, true}) {
      const auto operand = [&](Tensor v) {
        return is_constant ? constant(std::move(v)) : Operand(std::move(v));
      };
      const Tensor y = run("GatherBlockQuantized", {operand(t.data()), at, t.scales()}, how);
      EXPECT_EQ(y.type().static_dims(), (Ints{1, 3, 48}));
      EXPECT_THAT(numbers(y), near(middle));
      EXPECT_THAT(numbers(run("GatherBlockQuantized",
                              {operand(t.data()), at, t.scales(), operand(t.zeros())}, how)),
                  near(given));
    }
  }
}

TEST(OnnxGatherBlockQuantized, LooksUpNumbersOfFourBits) {
  const BlockTable t(4);
  const Tensor at = integers({2}, {1, 0});
  const Attributes how = {{"block_size", 16}};
  // Their zero point is 0 where none is given, of those without a sign, too.
  EXPECT_THAT(
      numbers(run("GatherBlockQuantized", {constant(t.wide(DType::u4)), at, t.scales()}, how)),
      near(t.rows({1, 0}, [](size_t) { return 0; })));
  EXPECT_THAT(
      numbers(run("GatherBlockQuantized",
                  {constant(t.wide(DType::u4)), at, t.scales(), constant(t.wide_zeros(DType::u4))},
                  how)),
      near(t.rows({1, 0}, [&](size_t block) { return t.zero(block); })));
  // Columns, with scales along rows: a row of each block.
  const Tensor table = integers({16, 2}, Ints(32, -3), DType::i4);
  const Tensor y =
      run("GatherBlockQuantized", {constant(table), integers({}, {-1}), reals({1, 2}, {2, 5})},
          {{"block_size", 16}, {"gather_axis", 1}, {"quantize_axis", 0}});
  EXPECT_EQ(numbers(y), Numbers(16, -15));
}

TEST(OnnxGatherBlockQuantized, ChecksItsTable) {
  const BlockTable t(4);
  const Tensor at = integers({2}, {1, 0});
  const auto error = [&](std::vector<Operand> operands, const Attributes& how) {
    return error_of("GatherBlockQuantized", operands, how);
  };
  const Attributes usual = {{"block_size", 16}};
  EXPECT_THAT(error({t.data(), at, t.scales()}, {{"block_size", 24}}),
              HasSubstr("block_size is 24"));
  EXPECT_THAT(error({t.data(), at, t.scales()}, {{"block_size", 16}, {"bits", 3}}),
              HasSubstr("3 bits"));
  EXPECT_THAT(error({t.data(), at, t.scales()}, {{"block_size", 16}, {"gather_axis", 1}}),
              HasSubstr("along axis 1"));
  EXPECT_THAT(error({reals({2, 2}, {1, 2, 3, 4}), at, t.scales()}, usual), HasSubstr("want i4"));
  EXPECT_THAT(error({t.data(), reals({1}, {1}), t.scales()}, usual), HasSubstr("want integers"));
  EXPECT_THAT(error({t.data(), at, reals({3}, {1, 2, 3})}, usual), HasSubstr("the table's rank"));
  EXPECT_THAT(error({t.data(), at, reals({2, 3}, Numbers(6, 1))}, usual), HasSubstr("3 rows"));
  EXPECT_THAT(error({t.data(), at, reals({3, 2}, Numbers(6, 1))}, usual),
              HasSubstr("the scale is"));
  EXPECT_THAT(error({t.data(), at, t.scales(), bytes({3, 1}, {0, 0, 0})}, usual),
              HasSubstr("too few"));
}

// ---- Others -------------------------------------------------------------------------------------

TEST(OnnxContributedShape, ExpandDims) {
  Tensor x = reals({2, 3}, Numbers(6, 1));
  auto dims = [&](int64_t axis) {
    return run("ExpandDims", {x, constant(integers({}, {axis}, DType::i32))}).type().static_dims();
  };
  EXPECT_EQ(dims(0), (Ints{1, 2, 3}));
  EXPECT_EQ(dims(-1), (Ints{2, 3, 1}));
  EXPECT_THAT(error_of("ExpandDims", {x, constant(integers({}, {3}, DType::i32))}),
              HasSubstr("axis 3 is outside rank 3"));
}

TEST(OnnxContributedShape, RangeTriluUnique) {
  EXPECT_EQ(numbers(run("Range", {scalar(1), scalar(4)})), Numbers({1, 2, 3}));
  EXPECT_EQ(numbers(run("Range", {scalar(1), scalar(4), scalar(2)})), Numbers({1, 3}));
  EXPECT_EQ(numbers(run("Trilu", {reals({2, 2}, {1, 2, 3, 4})}, {{"upper", 0}})),
            Numbers({1, 0, 3, 4}));
  auto y = run_outputs("Unique", 1, {reals({6}, {2, 1, 1, 3, 4, 3})}, {},
                       {.domain = "com.microsoft", .outputs = 3});
  EXPECT_EQ(numbers(y[0]), Numbers({2, 1, 3, 4}));
  EXPECT_EQ(numbers(y[1]), Numbers({0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(numbers(y[2]), Numbers({1, 2, 2, 1}));
}

// The bucket of a distance as T5 has it, in doubles.
int64_t t5_bucket(int64_t away, bool both_ways, int64_t buckets, int64_t most) {
  int64_t bucket = 0;
  if (both_ways) {
    buckets /= 2;
    if (away > 0) bucket += buckets;
    away = std::abs(away);
  } else {
    away = std::max<int64_t>(-away, 0);
  }
  const int64_t exact = buckets / 2;
  if (away < exact) return bucket + away;
  const double part = std::log(static_cast<double>(away) / static_cast<double>(exact)) /
                      std::log(static_cast<double>(most) / static_cast<double>(exact));
  const auto far = exact + static_cast<int64_t>(part * static_cast<double>(buckets - exact) + 1e-6);
  return bucket + std::min(far, buckets - 1);
}

TEST(OnnxContributedShape, RelativePositionBiasOfBuckets) {
  const auto bias = [](const Tensor& table, const Tensor& length, int both, int most,
                       bool symbolic = false) {
    return run_node("RelativePositionBias", 1, {table, constant(length), constant(length)},
                    {{"max_distance", most}, {"is_bidirectional", both}},
                    {.domain = "com.microsoft", .symbolic = symbolic});
  };
  // From ONNX Runtime's tests: a head's buckets lie one after the other.
  const Tensor table = reals({4, 2}, {1, 3, 5, 7, 2, 4, 6, 8});
  const Tensor y = bias(table, integers({1}, {2}), 1, 128);
  EXPECT_EQ(y.type(), type_of(DType::f32, {1, 2, 2, 2}));
  EXPECT_EQ(numbers(y), Numbers({1, 7, 3, 1, 2, 8, 4, 2}));
  EXPECT_EQ(numbers(bias(reals({4, 1}, {1, 4, 7, 10}), integers({}, {2}), 0, 128)),
            Numbers({1, 1, 4, 1}));
  for (int both : {0, 1}) {
    Numbers number(32), expected;
    for (size_t i = 0; i < 32; ++i) number[i] = static_cast<double>(i);
    for (int64_t q = 0; q < 200; ++q)
      for (int64_t k = 0; k < 200; ++k)
        expected.push_back(static_cast<double>(t5_bucket(k - q, both != 0, 32, 128)));
    EXPECT_EQ(numbers(bias(reals({32, 1}, number), integers({}, {200}), both, 128)), expected);
  }
}

TEST(OnnxContributedShape, RelativePositionBiasRefuses) {
  const auto error = [](const Tensor& table, const Attributes& attributes, int64_t keys = 3) {
    return error_of("RelativePositionBias",
                    {table, constant(integers({}, {3})), constant(integers({}, {keys}))},
                    attributes);
  };
  const Tensor table = reals({4, 1}, {1, 2, 3, 4});
  EXPECT_THAT(error(table, {}), HasSubstr("'max_distance' is missing"));
  EXPECT_THAT(error(table, {{"max_distance", 2}}), HasSubstr("max_distance is 2"));
  EXPECT_THAT(error(table, {{"max_distance", 8}}, 4), HasSubstr("3 queries and 4 keys"));
  EXPECT_THAT(error(reals({1, 4}, {1, 2, 3, 4}), {{"max_distance", 8}}),
              HasSubstr("has 1 buckets"));
  EXPECT_THAT(error(reals({4}, {1, 2, 3, 4}), {{"max_distance", 8}}),
              HasSubstr("bias_table is f32[4], must have rank 2"));
}

TEST(OnnxContributedShape, InverseNeedsPivots) {
  // The first pivot of the first matrix is 0.
  Tensor x = reals({2, 2, 2}, {0, 2, 1, 0, 1, 2, 3, 4});
  for (bool symbolic : {false, true})
    EXPECT_THAT(
        numbers(run_node("Inverse", 1, {x}, {}, {.domain = "com.microsoft", .symbolic = symbolic})),
        near({0, 1, 0.5, 0, -2, 1, 1.5, -0.5}));
  Tensor big = reals({3, 3}, {2, 0, 1, 0, 1e-3, 5, 1, 4, 0});
  Numbers inverse = numbers(run("Inverse", {big}));
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += numbers(big)[i * 3 + k] * inverse[k * 3 + j];
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-4);
    }
  EXPECT_THAT(error_of("Inverse", {reals({2, 3}, Numbers(6, 1))}), HasSubstr("square matrices"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
