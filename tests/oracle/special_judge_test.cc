#include "oracle/special_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/reference/evaluate.h"
#include "ir/text.h"

namespace hone::HONE_FILE {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor tensor(DType dtype, std::vector<double> numbers) {
  return Tensor::from_reals(Type::get(dtype, {static_cast<int64_t>(numbers.size())}), numbers);
}

std::vector<Difference> differences(std::string_view text, const std::vector<Tensor>& inputs,
                                    const Tensor& actual) {
  const Graph graph = parse_graph(text).value();
  return differences_of_specials(graph, inputs, std::vector{actual}).value();
}

TEST(SpecialJudge, HoldsNaNAndZerosToTheReference) {
  constexpr std::string_view kMax =
      "graph @g(%x: f16[2], %y: f16[2]) -> f16[2] { %z = max %x, %y return %z }";
  const std::vector<Tensor> inputs = {tensor(DType::f16, {0.0, -0.0}),
                                      tensor(DType::f16, {kNan, 0.0})};
  EXPECT_TRUE(differences(kMax, inputs, tensor(DType::f16, {kNan, 0.0})).empty());
  const auto wrong = [&](double a, double b) {
    const std::vector<Difference> found = differences(kMax, inputs, tensor(DType::f16, {a, b}));
    return found.size() == 1 && !found[0].is_undecided ? found[0].what : "";
  };
  EXPECT_THAT(wrong(0, 0), testing::HasSubstr("expected nan"));
  EXPECT_THAT(wrong(kNan, -0.0), testing::HasSubstr("the zero at [1]"));
}

TEST(SpecialJudge, HoldsEachNumberToItsSize) {
  constexpr std::string_view kNeg = "graph @g(%x: f32[2]) -> f32[2] { %y = neg %x return %y }";
  const std::vector<Tensor> inputs = {tensor(DType::f32, {1e-42, 1e30})};
  EXPECT_TRUE(differences(kNeg, inputs, tensor(DType::f32, {-1e-42, -1e30})).empty());
  const std::vector<Difference> found = differences(kNeg, inputs, tensor(DType::f32, {0, -1e30}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].is_undecided);
}

TEST(SpecialJudge, SaysNothingOfTheSignOfProductsThatVanish) {
  constexpr std::string_view kDot =
      "graph @g(%x: f32[2], %y: f32[2]) -> f32[] {"
      " %z = dot %x, %y {lhs_contract = [0], rhs_contract = [0]} return %z }";
  const auto is_undecided = [&](double x, std::vector<double> y) {
    const std::vector<Tensor> inputs = {tensor(DType::f32, {x, x}),
                                        tensor(DType::f32, std::move(y))};
    const Tensor expected =
        evaluate(parse_graph(kDot).value(), inputs, {.numerics = Numerics::rounded}).value()[0];
    const double other = std::signbit(expected.real_at(0)) ? 0.0 : -0.0;
    const std::vector<Difference> found =
        differences(kDot, inputs, Tensor::from_reals(Type::scalar(DType::f32), std::vector{other}));
    EXPECT_EQ(found.size(), 1U);
    return found.empty() || found[0].is_undecided;
  };
  EXPECT_TRUE(is_undecided(1e-40, {2e-38, -1e-38}));
  EXPECT_FALSE(is_undecided(0, {1, 1}));
}

TEST(SpecialJudge, SaysNothingWhereTheOrderOfASumDecides) {
  constexpr std::string_view kSum =
      "graph @g(%x: f32[4]) -> f32[] { %y = reduce %x {kind = sum, axes = [0]} return %y }";
  const auto is_undecided = [&](std::vector<double> terms, double sum) {
    const std::vector<Difference> found =
        differences(kSum, {tensor(DType::f32, std::move(terms))},
                    Tensor::from_reals(Type::scalar(DType::f32), std::vector{sum}));
    EXPECT_EQ(found.size(), 1U);
    return found.empty() || found[0].is_undecided;
  };
  constexpr double kHuge = 3e38;
  EXPECT_TRUE(is_undecided({1e30, 1, 1, -1e30}, 1));           // terms that cancel
  EXPECT_TRUE(is_undecided({kHuge, 1, kHuge, -kHuge}, kNan));  // overflow on the way
  EXPECT_FALSE(is_undecided({1, 2, 3, 4}, 9));
  EXPECT_FALSE(is_undecided({1, 2, kNan, 4}, 9));
}

}  // namespace
}  // namespace hone::HONE_FILE
