#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Resampling, sampling and regions, where the standard's node tests do not go.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;

const NodeOptions kSymbolic = {.symbolic = true};

Operand scales(const Numbers& values) {
  return constant(reals({static_cast<int64_t>(values.size())}, values));
}
Operand sizes(const Ints& values) {
  return constant(integers({static_cast<int64_t>(values.size())}, values));
}
Tensor image(const Ints& size, const Numbers& values) {
  return reals({1, 1, size[0], size[1]}, values);
}

TEST(OnnxImage, ImageScalerAddsToEachChannel) {
  const Tensor x = reals({1, 3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Attributes attributes = {{"scale", .5}, {"bias", Numbers{1, -2, 3}}};
  for (bool symbolic : {false, true})
    EXPECT_EQ(numbers(run_node("ImageScaler", 1, {x}, attributes,
                               {.symbolic = symbolic, .numbers = {3}})),
              Numbers({1, 1.5, 2, 2.5, 0, .5, 1, 1.5, 7, 7.5, 8, 8.5}));
  EXPECT_EQ(numbers(run_node("ImageScaler", 1, {reals({1, 1, 1, 1}, {5})}, {{"bias", Numbers{1}}})),
            Numbers({6}));
  EXPECT_THAT(import_error("ImageScaler", 1, {x}, {{"bias", Numbers{1, 2}}}),
              says("bias ... 2 ... 3 channels"));
  EXPECT_THAT(import_error("ImageScaler", 1, {x}), HasSubstr("bias has 0 numbers"));
  EXPECT_THAT(import_error("ImageScaler", 1, {reals({2}, {1, 2})}, {{"bias", Numbers{1}}}),
              HasSubstr("must have rank 4"));
}

TEST(OnnxImage, UpsampleInEveryVersion) {
  Tensor x = image({1, 2}, {1, 2});
  const Numbers twice = {1, 1, 2, 2};
  EXPECT_EQ(numbers(run_node("Upsample", 9, {x, scales({1, 1, 1, 2})})), twice);
  EXPECT_EQ(numbers(run_node("Upsample", 9, {x, scales({1, 1, 1, 2})}, {}, kSymbolic)), twice);
  EXPECT_EQ(numbers(run_node("Upsample", 7, {x}, {{"scales", Numbers{1, 1, 1, 2}}})), twice);
  EXPECT_EQ(numbers(run_node("Upsample", 1, {x}, {{"height_scale", 1.0}, {"width_scale", 2.0}})),
            twice);
  EXPECT_EQ(numbers(run_node("Upsample", 9, {x, scales({1, 1, 1, 2})}, {{"mode", "linear"}})),
            Numbers({1, 1.5, 2, 2}));
}

TEST(OnnxImage, TheFirstResizeRoundsUpWhereItShrinks) {
  Tensor x = image({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(numbers(run_node("Resize", 10, {x, scales({1, 1, 0.6, 0.6})})), Numbers({1, 3}));
}

// Each result is worked out from the coordinate formula of the standard.
TEST(OnnxImage, ResizeOfSymbolicSizesIsThatOfNumbers) {
  Tensor x = image({1, 4}, {1, 2, 4, 8});
  auto resize = [&](const char* mode, const char* coordinates, double scale, NodeOptions options) {
    return numbers(run_node("Resize", 19, {x, none(), scales({1, 1, 1, scale})},
                            {{"mode", mode}, {"coordinate_transformation_mode", coordinates}},
                            options));
  };
  for (NodeOptions options : {NodeOptions(), kSymbolic}) {
    EXPECT_THAT(resize("linear", "half_pixel", 0.5, options),
                Pointwise(DoubleNear(1e-6), {1.5, 6.0}));
    EXPECT_THAT(resize("linear", "asymmetric", 0.5, options),
                Pointwise(DoubleNear(1e-6), {1., 4.}));
    EXPECT_THAT(resize("linear", "align_corners", 0.5, options),
                Pointwise(DoubleNear(1e-6), {1.0, 8.0}));
    EXPECT_THAT(resize("nearest", "half_pixel", 2, options),
                Pointwise(DoubleNear(1e-6), {1., 1., 2., 2., 4., 4., 8., 8.}));
    // Source 0.5 with a = -0.75: weights -0.09375, 0.59375, 0.59375, -0.09375.
    EXPECT_NEAR(resize("cubic", "half_pixel", 0.5, options)[0],
                -0.09375 * 1 + 0.59375 * 1 + 0.59375 * 2 - 0.09375 * 4, 1e-6);
  }
}

TEST(OnnxImage, ResizeKeepsTheAspectRatio) {
  Tensor x = image({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto dims = [&](const char* policy) {
    return run_node("Resize", 18, {x, none(), none(), sizes({6, 8})},
                    {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", policy}})
        .type();
  };
  EXPECT_EQ(dims("stretch"), type_of(DType::f32, {1, 1, 6, 8}));
  EXPECT_EQ(dims("not_larger"), type_of(DType::f32, {1, 1, 4, 8}));
  EXPECT_EQ(dims("not_smaller"), type_of(DType::f32, {1, 1, 6, 12}));
}

TEST(OnnxImage, ResizeOfIntegersRounds) {
  Tensor x = integers({1, 1, 1, 2}, {0, 3}, DType::u8);
  EXPECT_EQ(
      numbers(run_node("Resize", 13, {x, none(), scales({1, 1, 1, 2})}, {{"mode", "linear"}})),
      Numbers({0, 1, 2, 3}));
}

TEST(OnnxImage, ResizeNamesWhatIsWrong) {
  Tensor x = image({1, 2}, {1, 2});
  EXPECT_THAT(import_error("Resize", 13, {x}), HasSubstr("neither scales and sizes"));
  EXPECT_THAT(import_error("Resize", 13, {x, none(), scales({1, 1, 1, -2})}),
              HasSubstr("scale -2 is not positive"));
  EXPECT_THAT(import_error("Resize", 13, {x, none(), scales({1, 2})}), HasSubstr("for 4 axes"));
  EXPECT_THAT(import_error("Resize", 13, {x, none(), scales({1, 1, 1, 2})}, {{"mode", "magic"}}),
              HasSubstr("mode is 'magic'"));
}

TEST(OnnxImage, GridSampleInterpolatesVolumes) {
  Tensor x = reals({1, 1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  // The middle, and a corner: x, y, z are 1, -1, 1.
  Tensor grid = reals({1, 1, 1, 2, 3}, {0, 0, 0, 1, -1, 1});
  Attributes linear = {{"mode", "linear"}, {"align_corners", 1}};
  EXPECT_EQ(numbers(run_node("GridSample", 20, {x, grid}, linear)), Numbers({3.5, 5}));
  Attributes nearest = {{"mode", "nearest"}, {"padding_mode", "border"}};
  EXPECT_EQ(numbers(run_node("GridSample", 20, {x, reals({1, 1, 1, 1, 3}, {9, 9, -9})}, nearest)),
            Numbers({3}));
  EXPECT_THAT(import_error("GridSample", 16, {x, grid}), HasSubstr("must have rank 4"));
  EXPECT_THAT(import_error("GridSample", 20, {x, reals({}, {0})}),
              HasSubstr("a grid of type f32[]"));
  EXPECT_THAT(import_error("GridSample", 20, {reals({}, {0}), grid}),
              HasSubstr("the image is f32[]"));
}

TEST(OnnxImage, GridSampleReflectsAndZeroes) {
  Tensor x = image({1, 2}, {3, 5});
  // Half a pixel beyond the right end.
  Tensor grid = reals({1, 1, 1, 2}, {1.5, 0});
  EXPECT_EQ(numbers(run_node("GridSample", 16, {x, grid})), Numbers({0}));
  EXPECT_EQ(numbers(run_node("GridSample", 16, {x, grid}, {{"padding_mode", "reflection"}})),
            Numbers({5}));
  EXPECT_EQ(numbers(run_node("GridSample", 16, {x, grid}, {{"padding_mode", "border"}})),
            Numbers({5}));
}

TEST(OnnxImage, AffineGridOfTheIdentity) {
  Tensor theta = reals({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  for (bool is_constant : {true, false}) {
    Operand size = integers({4}, {1, 1, 2, 2});
    size.is_constant = is_constant;
    EXPECT_EQ(numbers(run_node("AffineGrid", 20, {theta, size})),
              Numbers({-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5}));
    EXPECT_EQ(numbers(run_node("AffineGrid", 20, {theta, size}, {{"align_corners", 1}})),
              Numbers({-1, -1, 1, -1, -1, 1, 1, 1}));
  }
}

TEST(OnnxImage, RegionsArePooled) {
  Tensor x = image({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  Tensor whole = reals({1, 5}, {0, 0, 0, 3, 3});
  EXPECT_EQ(numbers(run_node("MaxRoiPool", 1, {x, whole}, {{"pooled_shape", Ints{2, 2}}})),
            Numbers({5, 7, 13, 15}));
  // Two samples per dim lie at 0.5 and 1.5 of a 2 x 2 region: the mean of their means.
  Attributes align = {{"sampling_ratio", 2}};
  EXPECT_EQ(numbers(run_node("RoiAlign", 10, {x, reals({1, 4}, {0, 0, 2, 2}), integers({1}, {0})},
                             align)),
            Numbers({5}));
  EXPECT_EQ(numbers(run_node("RoiAlign", 10, {x, reals({1, 4}, {0, 0, 2, 2}), integers({1}, {0})})),
            Numbers({5}));
  // half_pixel moves the region by a half.
  EXPECT_EQ(numbers(run_node("RoiAlign", 16, {x, reals({1, 4}, {1, 1, 3, 3}), integers({1}, {0})},
                             align)),
            Numbers({7.5}));
  EXPECT_THAT(import_error("MaxRoiPool", 1, {x, reals({1, 4}, {0, 0, 3, 3})},
                           {{"pooled_shape", Ints{2, 2}}}),
              HasSubstr("want 5 columns"));
}

TEST(OnnxImage, Col2ImAddsWhatOverlaps) {
  // Blocks of 2 at positions 0 and 1 of three pixels.
  Tensor x = reals({1, 2, 2}, {1, 2, 3, 4});
  Operand shape = constant(integers({1}, {3})), block = constant(integers({1}, {2}));
  EXPECT_EQ(numbers(run_node("Col2Im", 18, {x, shape, block})), Numbers({1, 5, 4}));
  EXPECT_THAT(import_error("Col2Im", 18, {x, constant(integers({1}, {1})), block}),
              HasSubstr("do not fit"));
  EXPECT_THAT(import_error("Col2Im", 18, {x, shape, block}, {{"strides", Ints{0}}}),
              HasSubstr("strides has the number 0"));
}

TEST(OnnxResize, OpenSizesRepeatTheEdge) {
  // Positions -0.25, 0.25, 0.75, 1.25: what is beyond the ends has the value at the end.
  const Tensor x = reals({1, 1, 1, 2}, {1, 3});
  EXPECT_EQ(numbers(run_node("Resize", 13, {x, none(), scales({1, 1, 1, 2})}, {{"mode", "linear"}},
                             kSymbolic)),
            Numbers({1, 1.5, 2.5, 3}));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
