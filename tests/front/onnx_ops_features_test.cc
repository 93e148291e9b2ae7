#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// The ops of ai.onnx.ml that prepare features. Expected values are those of ONNX Runtime 1.23.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

NodeOptions ml(bool symbolic = false) {
  return {.domain = "ai.onnx.ml", .symbolic = symbolic, .numbers = {3}};
}

TEST(OnnxMlFeatures, ImputerReplacesWhatIsMissing) {
  const Tensor x = reals({2, 3}, {1, kNan, 3, kNan, 5, 0});
  for (bool symbolic : {false, true}) {
    EXPECT_THAT(numbers(run_node(
                    "Imputer", 1, {x},
                    {{"imputed_value_floats", Numbers{7, 8, 9}}, {"replaced_value_float", kNan}},
                    ml(symbolic))),
                ElementsAre(1, 8, 3, 7, 5, 0));
  }
  // Without an attribute, 0 is the missing value; NaN stays then.
  const Tensor y = run_node("Imputer", 1, {x}, {{"imputed_value_floats", Numbers{7}}}, ml());
  EXPECT_EQ(y.real_at(5), 7);
  EXPECT_TRUE(std::isnan(y.real_at(1)) && std::isnan(y.real_at(3)));
  EXPECT_THAT(
      numbers(run_node("Imputer", 1, {reals({3}, {1, kNan, 3})},
                       {{"imputed_value_floats", Numbers{7, 8, 9}}, {"replaced_value_float", kNan}},
                       ml())),
      ElementsAre(1, 8, 3));
  const Tensor counts = run_node("Imputer", 1, {integers({2, 2}, {1, -1, 0, -1})},
                                 {{"imputed_value_int64s", Ints{4, 5}},
                                  {"replaced_value_int64", -1},
                                  {"replaced_value_float", 0.0}},
                                 ml());
  EXPECT_EQ(counts.dtype(), DType::i64);
  EXPECT_THAT(numbers(counts), ElementsAre(1, 5, 0, 5));
}

TEST(OnnxMlFeatures, ImputerRefuses) {
  const Tensor x = reals({1, 3}, {1, 2, 3});
  const auto error = [&](const Attributes& attributes) {
    return import_error("Imputer", 1, {x}, attributes, ml());
  };
  EXPECT_THAT(error({}), HasSubstr("imputed_value_floats is missing"));
  EXPECT_THAT(error({{"imputed_value_int64s", Ints{1}}}), says("imputed_value_floats ... f32"));
  EXPECT_THAT(error({{"imputed_value_floats", Numbers{1, 2}}}),
              HasSubstr("imputed_value_floats has 2 numbers for 3 features"));
  EXPECT_THAT(error({{"imputed_value_floats", Numbers{1}}, {"imputed_value_int64s", Ints{1}}}),
              HasSubstr("given twice"));
  EXPECT_THAT(import_error("Imputer", 1, {integers({1}, {1}, DType::boolean)},
                           {{"imputed_value_int64s", Ints{1}}}, ml()),
              HasSubstr("must have numbers"));
}

TEST(OnnxMlFeatures, OneHotEncoderHasAColumnPerCategory) {
  const Attributes attributes = {{"cats_int64s", Ints{3, 1, 2}}};
  for (bool symbolic : {false, true}) {
    const Tensor y =
        run_node("OneHotEncoder", 1, {integers({2, 2}, {1, 3, 2, 9})}, attributes, ml(symbolic));
    EXPECT_EQ(y.type(), type_of(DType::f32, {2, 2, 3}));
    EXPECT_THAT(numbers(y), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0));
  }
  // Reals are rounded towards 0, and NaN is not a category.
  EXPECT_THAT(numbers(run_node("OneHotEncoder", 1, {reals({4}, {1.7, -3.2, kNan, 0})},
                               {{"cats_int64s", Ints{0, 1, -3}}}, ml())),
              ElementsAre(0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0));
}

TEST(OnnxMlFeatures, OneHotEncoderRefuses) {
  const Tensor x = integers({1}, {1});
  const auto error = [&](const Attributes& attributes) {
    return import_error("OneHotEncoder", 1, {x}, attributes, ml());
  };
  EXPECT_THAT(error({}), says("cats_int64s and cats_strings"));
  EXPECT_THAT(error({{"cats_int64s", Ints{1}}, {"cats_strings", Words{"a"}}}),
              says("cats_int64s and cats_strings"));
  EXPECT_THAT(error({{"cats_int64s", Ints{1, 1}}}), HasSubstr("a category is there twice"));
  EXPECT_THAT(error({{"cats_int64s", Ints{}}}), HasSubstr("no categories"));
  EXPECT_THAT(error({{"cats_strings", Words{"a"}}}), HasSubstr("the operand has numbers"));
}

TEST(OnnxMlFeatures, FeatureVectorizerPutsColumnsSideBySide) {
  const Tensor x = reals({2, 2}, {1, 2, 3, 4}), y = reals({2, 1}, {5, 6});
  const auto of = [&](const Ints& widths) {
    return numbers(run_node("FeatureVectorizer", 1, {x, y}, {{"inputdimensions", widths}}, ml()));
  };
  EXPECT_THAT(of({2, 1}), ElementsAre(1, 2, 5, 3, 4, 6));
  EXPECT_THAT(of({3, 1}), ElementsAre(1, 2, 0, 5, 3, 4, 0, 6));
  EXPECT_THAT(of({1, 1}), ElementsAre(1, 5, 3, 6));
  const Tensor row = run_node("FeatureVectorizer", 1, {integers({2}, {1, 2}), integers({1}, {5})},
                              {{"inputdimensions", Ints{2, 1}}}, ml());
  EXPECT_EQ(row.type(), type_of(DType::f32, {1, 3}));
  EXPECT_THAT(numbers(row), ElementsAre(1, 2, 5));
  const auto error = [&](const Ints& widths) {
    return import_error("FeatureVectorizer", 1, {x, y}, {{"inputdimensions", widths}}, ml());
  };
  EXPECT_THAT(error({2}), says("inputdimensions ... 1 ... 2 operands"));
  EXPECT_THAT(error({2, -1}), HasSubstr("has the number -1"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
