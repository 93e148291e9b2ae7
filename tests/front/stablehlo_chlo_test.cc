#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

// Ops of CHLO that hone spells out.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::vector<double> numbers_of(std::string_view text) {
  const Result<Model> model = parse_hlo(text, "p");
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return {};
  const Result<std::vector<Tensor>> results =
      evaluate_model(*model, {}, {.real_outputs_as_f64 = true});
  EXPECT_TRUE(results.ok()) << results.error().to_string();
  std::vector<double> numbers;
  for (int64_t i = 0; results.ok() && i < results->front().elements(); ++i)
    numbers.push_back(results->front().real_at(i));
  return numbers;
}

// exp(-x) times the modified Bessel function of order 1: up to 1 by its series, whose terms soon
// vanish; beyond, by the standard library, which loses digits for small x.
double bessel_i1e(double x) {
  if (x > 1) return std::exp(-x) * std::cyl_bessel_i(1.0, x);
  double term = x / 2, sum = 0;
  for (int k = 0; k < 20; ++k) {
    sum += term;
    term *= x / 2 * (x / 2) / ((k + 1.0) * (k + 2.0));
  }
  return std::exp(-x) * sum;
}

TEST(Chlo, BesselI1eIsThatOfASeriesAndOfTheStandardLibrary) {
  const std::vector<double> arguments = {1e-30,  1e-4, 0.5, 1,     2.5, -3, 7,   12.5,
                                         19.999, 20,   -21, 25.25, 40,  80, 250, 1e-100};
  std::vector<std::string> texts;
  for (const double x : arguments) texts.push_back(fmt::format("{:e}", x));
  const std::vector<double> made =
      numbers_of(fmt::format("func.func @main() -> tensor<{0}xf64> {{\n"
                             "  %x = stablehlo.constant dense<[{1}]> : tensor<{0}xf64>\n"
                             "  %r = chlo.bessel_i1e %x : tensor<{0}xf64> -> tensor<{0}xf64>\n"
                             "  return %r : tensor<{0}xf64>\n}}\n",
                             texts.size(), join(texts, ", ")));
  ASSERT_EQ(made.size(), arguments.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const double x = arguments[i], size = std::abs(x);
    const double want = std::copysign(bessel_i1e(size), x);
    EXPECT_NEAR(made[i], want, 1e-14 * std::abs(want)) << x;
  }
  const std::vector<double> special = numbers_of(
      "func.func @main() -> tensor<5xf32> {\n"
      "  %x = stablehlo.constant dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000]> : "
      "tensor<5xf32>\n"
      "  %r = chlo.bessel_i1e %x : tensor<5xf32> -> tensor<5xf32>\n"
      "  return %r : tensor<5xf32>\n}\n");
  EXPECT_TRUE(special[0] == 0 && !std::signbit(special[0]));
  EXPECT_TRUE(special[1] == 0 && std::signbit(special[1]));
  EXPECT_EQ(special[2], 0);
  EXPECT_EQ(special[3], 0);
  EXPECT_TRUE(std::isnan(special[4]));
}

// lhs: 4 rows of 2; the groups have 1, 0 and 2 of them. The other side of a group may be infinite
// without harm to others.
TEST(Chlo, RaggedDotTakesTheRightSideOfEachGroup) {
  constexpr std::string_view kLeft =
      "  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : "
      "tensor<4x2xf32>\n"
      "  %s = stablehlo.constant dense<[1, 0, 2]> : tensor<3xi32>\n";
  EXPECT_EQ(numbers_of(fmt::format(
                "func.func @main() -> tensor<4x1xf32> {{\n{}"
                "  %b = stablehlo.constant dense<[[[1.0], [10.0]], [[0x7F800000], [1.0]], "
                "[[100.0], [1.0]]]> : tensor<3x2x1xf32>\n"
                "  %r = \"chlo.ragged_dot\"(%a, %b, %s) {{ragged_dot_dimension_numbers = "
                "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
                "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
                "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}} : (tensor<4x2xf32>, "
                "tensor<3x2x1xf32>, tensor<3xi32>) -> tensor<4x1xf32>\n"
                "  return %r : tensor<4x1xf32>\n}}\n",
                kLeft)),
            (std::vector<double>{21, 304, 506, 0}));
  // The ragged dim is contracted: a product for each group.
  EXPECT_EQ(numbers_of(fmt::format(
                "func.func @main() -> tensor<3x2x1xf32> {{\n{}"
                "  %b = stablehlo.constant dense<[[1.0], [10.0], [100.0], [0x7F800000]]> : "
                "tensor<4x1xf32>\n"
                "  %r = \"chlo.ragged_dot\"(%a, %b, %s) {{ragged_dot_dimension_numbers = "
                "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
                "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], "
                "lhs_ragged_dimensions = [0], rhs_group_dimensions = []>}} : (tensor<4x2xf32>, "
                "tensor<4x1xf32>, tensor<3xi32>) -> tensor<3x2x1xf32>\n"
                "  return %r : tensor<3x2x1xf32>\n}}\n",
                kLeft)),
            (std::vector<double>{1, 2, 0, 0, 530, 640}));
}

TEST(Chlo, RaggedDotRefusesDimsThatDoNotFit) {
  EXPECT_THAT(parse_hlo("func.func @main(%a: tensor<4x2xf32>, %b: tensor<3x2x1xf32>, "
                        "%s: tensor<2xi32>) -> tensor<4x1xf32> {\n"
                        "  %r = \"chlo.ragged_dot\"(%a, %b, %s) {ragged_dot_dimension_numbers = "
                        "#chlo.ragged_dot<lhs_contracting_dimensions = [1], "
                        "rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], "
                        "rhs_group_dimensions = [0]>} : (tensor<4x2xf32>, tensor<3x2x1xf32>, "
                        "tensor<2xi32>) -> tensor<4x1xf32>\n"
                        "  return %r : tensor<4x1xf32>\n}\n",
                        "p"),
              refuses(ErrorCode::bad_input, "p:2:8 ... 2 sizes"));
}

}  // namespace
}  // namespace hone::HONE_FILE
