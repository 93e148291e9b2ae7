#include "oracle/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const double kNan = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

Tensor f64(const std::vector<double>& values) {
  return Tensor::from_reals(Type::get(DType::f64, {static_cast<int64_t>(values.size())}), values);
}

Comparison compared(const Tensor& actual, const Tensor& expected, Tolerance tolerance = {}) {
  Result<Comparison> result = compare(actual, expected, tolerance);
  EXPECT_TRUE(result.ok());
  return *result;
}

TEST(Compare, CountsWhatIsBeyondTheTolerance) {
  // Differences 0, 0.5, 1, 4; allowed 0.1 + 0.1 * {1, 2, 10, 10} = 0.2, 0.3, 1.1, 1.1.
  const Comparison result =
      compared(f64({1, 2.5, 11, 14}), f64({1, 2, 10, 10}), {.relative = 0.1, .absolute = 0.1});
  EXPECT_EQ(result.bad, 2);
  EXPECT_EQ(result.first->index, 1);
  EXPECT_EQ(result.worst->index, 3);
  EXPECT_EQ(result.max_difference, 4);
  EXPECT_DOUBLE_EQ(result.passing_absolute, 3);     // 4 - 0.1 * 10
  EXPECT_DOUBLE_EQ(result.passing_relative, 0.39);  // (4 - 0.1) / 10
}

TEST(Compare, NanAgreesWithNanAndInfinityWithItself) {
  EXPECT_TRUE(
      compared(f64({kNan, kInfinity, -kInfinity}), f64({kNan, kInfinity, -kInfinity})).passed());
  for (const auto& [actual, expected] : std::vector<std::pair<double, double>>{
           {kNan, 1}, {1, kNan}, {kInfinity, -kInfinity}, {kInfinity, 1}, {1, kInfinity}}) {
    const Comparison result = compared(f64({actual}), f64({expected}), {1e9, 1e9});
    EXPECT_EQ(result.bad, 1) << actual << " " << expected;
    EXPECT_THAT(result.to_string(), HasSubstr("no tolerance would pass"));
  }
}

TEST(Compare, ThePrintedTolerancePasses) {
  const Tensor expected = f64({1, 3, -7, 0.1, 1e-9});
  for (double off : {1e-7, 0.001, 0.33333333, 5.0, 12345.678}) {
    const Tensor actual = f64({1 + off, 3, -7 - 2 * off, 0.1, 1e-9});
    const std::string text = compared(actual, expected, {1e-9, 1e-9}).to_string();
    Tolerance first, second;
    const size_t at = text.find("would pass");
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_EQ(std::sscanf(text.c_str() + at,
                          "would pass at atol %lf with rtol %lf, or at rtol %lf with atol %lf",
                          &first.absolute, &first.relative, &second.relative, &second.absolute),
              4)
        << text;
    EXPECT_TRUE(compared(actual, expected, first).passed()) << text;
    EXPECT_TRUE(compared(actual, expected, second).passed()) << text;
  }
}

TEST(Compare, IntegersAreExactAlsoBeyondDoubles) {
  const Type type = Type::get(DType::i64, {2});
  const int64_t large = int64_t{1} << 60;
  const Comparison result = compared(Tensor::from_integers(type, Ints{large, large + 1}),
                                     Tensor::from_integers(type, Ints{large, large}));
  EXPECT_EQ(result.bad, 1);
  EXPECT_EQ(result.first->index, 1);
  EXPECT_EQ(result.max_difference, 1);
  EXPECT_EQ(default_tolerance(DType::i64).absolute, 0);
}

TEST(Compare, UnsignedImagesAreLarge) {
  const Type type = Type::get(DType::u64, {1});
  const Comparison result =
      compared(Tensor::from_integers(type, Ints{-1}), Tensor::from_integers(type, Ints{0}));
  EXPECT_EQ(result.max_difference, 0x1p64);
}

TEST(Compare, ShapesMustAgreeAndRealsMeetReals) {
  const Result<Comparison> shapes = compare(f64({1, 2}), f64({1}), {});
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.error().code(), ErrorCode::mismatch);
  EXPECT_EQ(shapes.error().what(), "the type is f64[2], expected f64[1]");
  EXPECT_FALSE(
      compare(f64({1}), Tensor::from_integers(Type::get(DType::i32, {1}), Ints{1}), {}).ok());
  // A bf16 result is compared with the f32 that a .npy file holds.
  EXPECT_TRUE(compare(Tensor::from_reals(Type::get(DType::bf16, {1}), std::vector<double>{0.5}),
                      f64({0.5}), {})
                  ->passed());
}

TEST(Compare, EmptyAndScalarTensors) {
  EXPECT_TRUE(compared(f64({}), f64({})).passed());
  const Comparison scalar =
      compared(Tensor::scalar(DType::f32, 1), Tensor::scalar(DType::f32, 2), {0, 0.5});
  EXPECT_THAT(scalar.to_string(), HasSubstr("first at []: 1, expected 2 (off by 1)"));
}

TEST(Compare, NamesThePlace) {
  EXPECT_EQ(index_text(Type::get(DType::f32, {2, 3, 4}), 23), "[1, 2, 3]");
  EXPECT_EQ(index_text(Type::get(DType::f32, {2, 3, 4}), 6), "[0, 1, 2]");
}

TEST(Compare, FindsABadElementInALaterPiece) {
  std::vector<double> values(200000, 1.0);
  const Tensor expected = f64(values);
  values[150001] = 2;
  EXPECT_EQ(compared(f64(values), expected).first->index, 150001);
}

}  // namespace
}  // namespace hone::HONE_FILE
