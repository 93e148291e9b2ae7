#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Pointwise;

testing::Matcher<const Numbers&> near(const Numbers& expected, double error = 1e-5) {
  return Pointwise(testing::DoubleNear(error), expected);
}
Tensor bytes(const Ints& dims, const Ints& values) { return integers(dims, values, DType::u8); }
Tensor scalar(double value) { return reals({}, {value}); }

constexpr int kFloat = 1, kFloat16 = 10, kInt16 = 5;

TEST(OnnxQuantize, RoundsToEvenThenAddsTheZeroPoint) {
  Tensor x = reals({1, 6}, {-1, 0.5, 1.5, 2.5, 3, 1000});
  for (int version : {10, 13, 19, 21, 23, 24}) {
    for (bool symbolic : {false, true}) {
      Tensor y = run_node("QuantizeLinear", version, {x, scalar(1), bytes({}, {1})}, {},
                          {.symbolic = symbolic});
      EXPECT_EQ(y.dtype(), DType::u8);
      EXPECT_EQ(numbers(y), Numbers({0, 1, 3, 3, 4, 255}));
    }
  }
  // Without a zero point the result is u8; a scale of shape [1] is one number.
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 13, {x, reals({1}, {0.5})})),
            Numbers({0, 1, 3, 5, 6, 255}));
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 13, {integers({2}, {7, 9}, DType::i32), scalar(2)})),
            Numbers({4, 4}));
}

TEST(OnnxQuantize, ScalesAlongAnAxisAndInBlocks) {
  Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 13, {x, reals({3}, {1, 2, 3})})),
            Numbers({1, 1, 1, 4, 2, 2}));
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 13, {x, reals({2}, {1, 2})}, {{"axis", -2}})),
            Numbers({1, 2, 3, 2, 2, 3}));
  // Blocks of two along axis 1; the last one is cut.
  Attributes blocks = {{"axis", 1}, {"block_size", 2}};
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 21, {x, reals({2, 2}, {1, 3, 2, 6})}, blocks)),
            Numbers({1, 2, 1, 2, 2, 1}));
  EXPECT_THAT(import_error("QuantizeLinear", 13, {x, reals({2}, {1, 2})}),
              HasSubstr("the scale is f32[2], want f32[3]"));
  EXPECT_THAT(import_error("QuantizeLinear", 13, {x, reals({3}, {1, 2, 3})}, {{"axis", 2}}),
              HasSubstr("axis 2 is outside rank 2"));
  EXPECT_THAT(import_error("QuantizeLinear", 21, {x, scalar(1)}, {{"block_size", -1}}),
              HasSubstr("block_size is -1"));
  EXPECT_THAT(import_error("QuantizeLinear", 13, {x, scalar(1), bytes({3}, {0, 0, 0})}),
              HasSubstr("their shapes differ"));
}

TEST(OnnxQuantize, NarrowAndWideTypes) {
  Tensor x = reals({4}, {-9, 3, 8, 40000});
  Tensor zero = integers({}, {-1}, DType::i4);
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 21, {x, scalar(1), zero})), Numbers({-8, 2, 7, 7}));
  Attributes wide = {{"output_dtype", kInt16}};
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 21, {x, scalar(1)}, wide)),
            Numbers({-9, 3, 8, 32767}));
  // The division is done in f16, the sum with the zero point is exact: 2049 is not an f16.
  Tensor y = run_node(
      "QuantizeLinear", 23,
      {reals({1}, {2048}, DType::f16), reals({}, {1}, DType::f16), integers({}, {1}, DType::u16)});
  EXPECT_EQ(numbers(y), Numbers({2049}));
  EXPECT_THAT(import_error("QuantizeLinear", 21, {x, scalar(1), zero}, wide),
              says("output_dtype ... i16 ... zero point ... i4"));
}

TEST(OnnxQuantize, DividesInTheGivenPrecision) {
  Tensor scale = scalar(1);  // 2049 is not an f16
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 23, {reals({1}, {2049}), scale},
                             {{"precision", kFloat16}, {"output_dtype", kInt16}})),
            Numbers({2048}));
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 23, {reals({1}, {2049}), scale},
                             {{"precision", kFloat}, {"output_dtype", kInt16}})),
            Numbers({2049}));
}

// The quotient is a number of the scale's type before it is rounded: 25.4999993 is 25.5 in f32.
TEST(OnnxQuantize, DividesBeforeItRounds) {
  const float scale = 5.0f / 255.0f;
  const double quotient = static_cast<double>(0.5f / scale);
  EXPECT_EQ(quotient, 25.5);
  EXPECT_LT(0.5 / static_cast<double>(scale), 25.5);
  Tensor x = reals({1}, {0.5}), step = reals({}, {static_cast<double>(scale)});
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 13, {x, step, bytes({}, {153})})), Numbers({179}));
}

TEST(OnnxQuantize, Float8SaturatesUnlessToldNotTo) {
  Tensor x = reals({3}, {1.06, 1e6, -1e6});
  Tensor zero = reals({}, {0}, DType::f8e4m3fn);
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 19, {x, scalar(1), zero})), Numbers({1, 448, -448}));
  Tensor wild = run_node("QuantizeLinear", 19, {x, scalar(1), zero}, {{"saturate", 0}});
  EXPECT_EQ(wild.real_at(0), 1);
  EXPECT_TRUE(std::isnan(wild.real_at(1)));
  Tensor low = reals({}, {0}, DType::f8e5m2);
  EXPECT_EQ(run_node("QuantizeLinear", 19, {x, scalar(1), low}).real_at(1), 57344);
  EXPECT_EQ(numbers(run_node("DequantizeLinear", 19,
                             {reals({2}, {1.5, -448}, DType::f8e4m3fn), scalar(2), zero})),
            Numbers({3, -896}));
}

TEST(OnnxQuantize, TypesOfFourAndTwoBits) {
  Tensor x = reals({4}, {-9, 0.6, 2.5, 40});
  Tensor two = integers({}, {0}, DType::i2), four = reals({}, {0}, DType::f4e2m1);
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 25, {x, scalar(1), two})), Numbers({-2, 1, 1, 1}));
  Tensor y = run_node("QuantizeLinear", 25, {x, scalar(1), four});
  EXPECT_EQ(numbers(y), Numbers({-6, 0.5, 2, 6}));
  // A scale that is a power of two.
  Tensor scale = reals({}, {4}, DType::f8e8m0);
  EXPECT_EQ(numbers(run_node("DequantizeLinear", 25, {y, scale})), Numbers({-24, 2, 8, 24}));
  EXPECT_EQ(numbers(run_node("QuantizeLinear", 25, {x, scale, two})), Numbers({-2, 0, 1, 1}));
}

TEST(OnnxDequantize, DiffersAndScales) {
  Tensor x = bytes({2, 2}, {0, 3, 128, 255});
  EXPECT_EQ(numbers(run_node("DequantizeLinear", 10, {x, scalar(2), bytes({}, {128})})),
            Numbers({-256, -250, 0, 254}));
  EXPECT_EQ(numbers(run_node("DequantizeLinear", 13, {x, reals({2}, {2, 4}), bytes({2}, {1, 3})},
                             {{"axis", 0}})),
            Numbers({-2, 4, 500, 1008}));
  EXPECT_EQ(numbers(run_node("DequantizeLinear", 13,
                             {integers({2}, {-70000, 16777217}, DType::i32), scalar(0.5)})),
            Numbers({-35000, 8388608}));
  // Differences of 16-bit numbers are no f16, their products with the scale are.
  Tensor y = run_node("DequantizeLinear", 21,
                      {integers({1}, {65535}, DType::u16), reals({}, {0.25}, DType::f16)});
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_EQ(numbers(y), Numbers({16384}));
  Tensor wide =
      run_node("DequantizeLinear", 23, {x, reals({}, {1}, DType::f16)}, {{"output_dtype", kFloat}});
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_THAT(import_error("DequantizeLinear", 13, {x, scalar(1), integers({}, {0}, DType::i8)}),
              says("zero point ... i8 ... input ... u8"));
  EXPECT_THAT(import_error("DequantizeLinear", 13, {integers({1}, {0}), scalar(1)}),
              says("i64 ... quantized type"));
}

TEST(OnnxQuantize, DynamicRangeIncludesZero) {
  auto results =
      run_outputs("DynamicQuantizeLinear", 11, {reals({3}, {1, 2, 2.55})}, {}, {.outputs = 3});
  EXPECT_EQ(numbers(results[0]), Numbers({100, 200, 255}));
  EXPECT_THAT(numbers(results[1]), near({0.01}));
  EXPECT_EQ(numbers(results[2]), Numbers({0}));
  results = run_outputs("DynamicQuantizeLinear", 11, {reals({2}, {-2.55, -1})}, {},
                        {.outputs = 3, .symbolic = true});
  EXPECT_EQ(numbers(results[0]), Numbers({0, 155}));
  EXPECT_EQ(numbers(results[2]), Numbers({255}));
  results = run_outputs("DynamicQuantizeLinear", 11, {reals({2}, {0, 0})}, {}, {.outputs = 3});
  EXPECT_EQ(numbers(results[0]), Numbers({0, 0}));
}

TEST(OnnxQuantize, QLinearMatMulPerRowAndColumn) {
  // a - 1 = [[1, 2], [3, 4]], scales of rows 1 and 2; b - zeros = [[1, 0], [1, 3]], columns 1, 10.
  Tensor a = bytes({2, 2}, {2, 3, 4, 5}), b = bytes({2, 2}, {2, 5, 2, 8});
  Tensor y = run_node("QLinearMatMul", 10,
                      {a, reals({2}, {1, 2}), bytes({2}, {1, 1}), b, reals({2}, {1, 10}),
                       bytes({2}, {1, 5}), scalar(2), bytes({}, {7})});
  // Products [[3, 6], [7, 12]], scaled [[3, 60], [14, 240]], halved: 1.5 rounds to 2.
  EXPECT_EQ(numbers(y), Numbers({9, 37, 14, 127}));
}

TEST(OnnxQuantize, QLinearConvPadsWithTheZeroPoint) {
  // x - 10 = [1, 2, 3]; kernels [1, 1] and [2, 0] less their zero points; bias 1 and -2.
  Tensor x = bytes({1, 1, 3}, {11, 12, 13}), w = bytes({2, 1, 2}, {4, 4, 7, 5});
  std::vector<Operand> operands = {
      x,           scalar(0.5),        bytes({}, {10}),
      w,           reals({2}, {1, 2}), bytes({2}, {3, 5}),
      scalar(0.5), bytes({}, {100}),   integers({2}, {1, -2}, DType::i32)};
  Attributes pads = {{"pads", Ints{1, 0}}};
  // Sums [1, 3, 5] and [0, 2, 4], with bias [2, 4, 6] and [-2, 0, 2], by scales 1 and 2.
  Numbers want = {102, 104, 106, 96, 100, 104};
  EXPECT_EQ(numbers(run_node("QLinearConv", 10, operands, pads)), want);
  EXPECT_EQ(numbers(run_node("QLinearConv", 10, operands, pads, {.symbolic = true})), want);
  operands[0] = bytes({1, 3, 1}, {11, 12, 13});
  Attributes last = {{"pads", Ints{1, 0}}, {"channels_last", 1}};
  EXPECT_EQ(numbers(run_node("QLinearConv", 1, operands, last, {.domain = "com.microsoft"})),
            Numbers({102, 96, 104, 100, 106, 104}));
  operands[2] = bytes({2}, {0, 0});
  EXPECT_THAT(import_error("QLinearConv", 10, operands, pads), HasSubstr("the zero point of x"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
