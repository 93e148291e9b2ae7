#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

void expect_near(const Tensor& got, const Numbers& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got.real_at(static_cast<int64_t>(i)), wanted[i], tolerance) << "at " << i;
}

// Epsilon is 0 in these tests, so that (-1, 1) and the like stay as they are.
constexpr double kNone = 0.0;

// ---- BatchNormalization -------------------------------------------------------------------------

// Channels (0, 2 | 4, 6) and (1, 1 | 1, 5): means 3 and 2, variances 5 and 3.
const Tensor kX = reals({2, 2, 2}, {0, 2, 1, 1, 4, 6, 1, 5});
const Tensor kScale = reals({2}, {2, 3}), kBias = reals({2}, {10, 20});
const Tensor kMean = reals({2}, {1, 0}), kVariance = reals({2}, {4, 9});

// scale * (x - mean) / deviation + bias for the two channels.
Numbers normalized(double m0, double d0, double m1, double d1) {
  Numbers y;
  for (double v : {0., 2.}) y.push_back(2 * (v - m0) / d0 + 10);
  for (double v : {1., 1.}) y.push_back(3 * (v - m1) / d1 + 20);
  for (double v : {4., 6.}) y.push_back(2 * (v - m0) / d0 + 10);
  for (double v : {1., 5.}) y.push_back(3 * (v - m1) / d1 + 20);
  return y;
}

TEST(OnnxBatchNormalization, InferenceInAllVersions) {
  const Numbers wanted = normalized(1, 2, 0, 3);
  const std::vector<Operand> operands = {kX, kScale, kBias, kMean, kVariance};
  for (int version : {1, 6, 7, 9, 14, 15}) {
    Attributes attributes = {{"epsilon", kNone}, {"momentum", 0.5}};
    if (version < 7) attributes.emplace_back("is_test", 1);
    if (version < 6) attributes.emplace_back("consumed_inputs", Ints{0, 0, 0, 1, 1});
    if (version < 9) attributes.emplace_back("spatial", 1);
    for (bool symbolic : {false, true})
      expect_near(
          run_node("BatchNormalization", version, operands, attributes, {.symbolic = symbolic}),
          wanted);
  }
}

TEST(OnnxBatchNormalization, Training) {
  const std::vector<Operand> operands = {kX, kScale, kBias, kMean, kVariance};
  const Numbers wanted = normalized(3, std::sqrt(5), 2, std::sqrt(3));
  for (int version : {6, 7, 9}) {
    const std::vector<Tensor> y =
        run_outputs("BatchNormalization", version, operands,
                    {{"epsilon", kNone}, {"momentum", 0.75}}, {.outputs = 5});
    expect_near(y[0], wanted);
    expect_near(y[1], {0.75 * 1 + 0.25 * 3, 0.25 * 2});
    expect_near(y[2], {0.75 * 4 + 0.25 * 5, 0.75 * 9 + 0.25 * 3});
    expect_near(y[3], {3, 2});
    expect_near(y[4], {5, 3});
  }
  for (bool symbolic : {false, true}) {
    const std::vector<Tensor> y =
        run_outputs("BatchNormalization", 15, operands,
                    {{"epsilon", kNone}, {"momentum", 0.75}, {"training_mode", 1}},
                    {.outputs = 3, .symbolic = symbolic});
    expect_near(y[0], wanted);
    expect_near(y[1], {0.75 * 1 + 0.25 * 3, 0.25 * 2});
    expect_near(y[2], {0.75 * 4 + 0.25 * 5, 0.75 * 9 + 0.25 * 3});
  }
}

TEST(OnnxBatchNormalization, NotSpatial) {
  const Tensor x = reals({2, 1, 2}, {0, 4, 2, 8});
  const Tensor scale = reals({1, 2}, {1, 10}), bias = reals({1, 2}, {0, 5});
  const Tensor mean = reals({1, 2}, {1, 6}), variance = reals({1, 2}, {1, 4});
  const std::vector<Operand> operands = {x, scale, bias, mean, variance};
  const Attributes attributes = {{"epsilon", kNone}, {"spatial", 0}};
  expect_near(run_node("BatchNormalization", 7, operands, attributes), {-1, -5, 1, 15});
  // In training the means are 1 and 6, the variances 1 and 4: the same numbers.
  const std::vector<Tensor> y =
      run_outputs("BatchNormalization", 7, operands, attributes, {.outputs = 5});
  expect_near(y[0], {-1, -5, 1, 15});
  expect_near(y[3], {1, 6});
}

TEST(OnnxBatchNormalization, MixedTypesAndPlainBatches) {
  const Tensor x = reals({2, 2, 2}, {0, 2, 1, 1, 4, 6, 1, 5}, DType::f16);
  const Tensor y = run_node("BatchNormalization", 15, {x, kScale, kBias, kMean, kVariance},
                            {{"epsilon", kNone}});
  EXPECT_EQ(y.dtype(), DType::f16);
  expect_near(y, normalized(1, 2, 0, 3), 0.01);
  const Tensor one = reals({1}, {1});
  expect_near(run_node("BatchNormalization", 9, {reals({3}, {1, 2, 3}), one, one, one, one},
                       {{"epsilon", 3.0}}),
              {1, 1.5, 2});
  EXPECT_NE(import_error("BatchNormalization", 9, {kX, one, kBias, kMean, kVariance}), "");
  EXPECT_NE(import_error("BatchNormalization", 9, {kX, kScale, kBias, kMean}), "");
}

// ---- Layers -------------------------------------------------------------------------------------

TEST(OnnxLayerNormalization, AllResults) {
  const Tensor x = reals({2, 2}, {1, 3, -4, 4});
  const Tensor scale = reals({2}, {2, 3}), bias = reals({2}, {10, 20});
  for (bool symbolic : {false, true}) {
    const std::vector<Tensor> y =
        run_outputs("LayerNormalization", 17, {x, scale, bias}, {{"epsilon", kNone}},
                    {.outputs = 3, .symbolic = symbolic});
    expect_near(y[0], {8, 23, 8, 23});
    EXPECT_EQ(y[1].type(), type_of(DType::f32, {2, 1}));
    expect_near(y[1], {2, 0});
    expect_near(y[2], {1, 0.25});
  }
  expect_near(run_node("LayerNormalization", 17, {x, scale}, {{"epsilon", kNone}}), {-2, 3, -2, 3});
}

TEST(OnnxLayerNormalization, ParametersThatBroadcastAndOtherPrecisions) {
  const Tensor x = reals({2, 1, 2}, {1, 3, -4, 4});
  // The dims from axis 1 on are normalized; the scale has fewer of them, and then more.
  expect_near(
      run_node("LayerNormalization", 17, {x, reals({1}, {2})}, {{"epsilon", kNone}, {"axis", 1}}),
      {-2, 2, -2, 2});
  expect_near(run_node("LayerNormalization", 17, {x, reals({2, 1, 1}, {2, 5})},
                       {{"epsilon", kNone}, {"axis", -2}}),
              {-2, 2, -5, 5});
  const Tensor half = reals({1, 2}, {1, 3}, DType::f16), ones = reals({2}, {1, 1}, DType::f16);
  const std::vector<Tensor> y =
      run_outputs("LayerNormalization", 17, {half, ones}, {{"epsilon", kNone}}, {.outputs = 3});
  EXPECT_EQ(y[0].dtype(), DType::f16);
  EXPECT_EQ(y[1].dtype(), DType::f32);
  expect_near(y[0], {-1, 1});
  // Statistics in f16 (data type 10): 2049 is 2048 there.
  const std::vector<Tensor> coarse =
      run_outputs("LayerNormalization", 17, {reals({1, 1}, {2049}), reals({1}, {1})},
                  {{"stash_type", 10}}, {.outputs = 2});
  EXPECT_EQ(coarse[1].dtype(), DType::f16);
  expect_near(coarse[1], {2048});
  EXPECT_THAT(import_error("LayerNormalization", 17, {x, reals({2}, {1, 1})}, {{"axis", 3}}),
              HasSubstr("axis"));
}

TEST(OnnxRmsNormalization, Formula) {
  const Tensor x = reals({2, 2}, {3, 4, 0, 5});
  const double root = std::sqrt(12.5);
  const Numbers wanted = {3 / root, 8 / root, 0, 10 / root};
  expect_near(run_node("RMSNormalization", 23, {x, reals({2}, {1, 2})}, {{"epsilon", kNone}}),
              wanted);
  expect_near(run_node("RMSNormalization", 23, {x, reals({1}, {2})},
                       {{"epsilon", 1.0}, {"axis", 0}}, {.symbolic = true}),
              {6 / std::sqrt(13.5), 8 / std::sqrt(13.5), 0, 10 / std::sqrt(13.5)});
}

TEST(OnnxGroupNormalization, ScalePerGroupAndPerChannel) {
  const Tensor x = reals({1, 4, 1}, {1, 3, -4, 4});  // groups (1, 3) and (-4, 4)
  const Tensor two = reals({2}, {2, 3}), zeros = reals({2}, {0, 1});
  const Attributes attributes = {{"num_groups", 2}, {"epsilon", kNone}};
  expect_near(run_node("GroupNormalization", 18, {x, two, zeros}, attributes), {-2, 2, -2, 4});
  const Tensor four = reals({4}, {1, 2, 3, 4}), none_of_it = reals({4}, {0, 0, 0, 10});
  expect_near(run_node("GroupNormalization", 21, {x, four, none_of_it}, attributes),
              {-1, 2, -3, 14});
  Attributes coarse = attributes;
  coarse.emplace_back("stash_type", 11);
  expect_near(run_node("GroupNormalization", 21, {x, four, none_of_it}, coarse), {-1, 2, -3, 14});
  EXPECT_THAT(import_error("GroupNormalization", 18, {x, four, four}, attributes),
              says("scale and bias ... 4 ... 2 groups"));
  EXPECT_THAT(import_error("GroupNormalization", 21, {x, four, four}, {{"num_groups", 0}}),
              HasSubstr("num_groups is 0"));
  EXPECT_NE(import_error("GroupNormalization", 21, {x, four, four}, {{"num_groups", 3}}), "");
}

TEST(OnnxInstanceNormalization, Formula) {
  const Tensor x = reals({1, 2, 2}, {1, 3, -4, 4});
  for (int version : {1, 6, 22}) {
    Attributes attributes = {{"epsilon", kNone}};
    if (version < 6) attributes.emplace_back("consumed_inputs", Ints{0, 0, 0});
    expect_near(run_node("InstanceNormalization", version,
                         {x, reals({2}, {2, 3}), reals({2}, {0, 1})}, attributes),
                {-2, 2, -2, 4});
  }
}

TEST(OnnxLrn, WindowsOfChannels) {
  const Tensor x = reals({1, 3, 1}, {1, 2, 3});
  // Squares 1, 4, 9: with size 2 a channel sees itself and the next one.
  expect_near(run_node("LRN", 1, {x}, {{"size", 2}, {"alpha", 2.0}, {"beta", 1.0}}),
              {1.0 / 6, 2.0 / 14, 3.0 / 10});
  // Every window sees all channels.
  expect_near(run_node("LRN", 13, {x},
                       {{"size", 1 << 30}, {"alpha", static_cast<double>(1 << 30)}, {"beta", 1.0}}),
              {1.0 / 15, 2.0 / 15, 3.0 / 15});
  EXPECT_THAT(import_error("LRN", 13, {x}, {{"size", 0}}), HasSubstr("size is 0"));
  EXPECT_THAT(import_error("LRN", 13, {x}), HasSubstr("size"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
