#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

// Ops that hone has no op for: linear algebra, normalization, and functions of CHLO.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::vector<double> numbers_of(const Result<Model>& model, size_t result = 0) {
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return {};
  const Result<std::vector<Tensor>> results = evaluate_model(*model, {});
  EXPECT_TRUE(results.ok()) << results.error().to_string();
  if (!results.ok()) return {};
  const Tensor& one = results->at(result);
  std::vector<double> numbers;
  for (int64_t i = 0; i < one.elements(); ++i) numbers.push_back(one.real_at(i));
  return numbers;
}

Result<Model> read_body(std::string_view body, std::string_view type) {
  return parse_hlo(
      fmt::format("func.func @main() -> {1} {{\n{0}  return %r : {1}\n}}\n", body, type), "p");
}

std::vector<double> result_of(std::string_view body, std::string_view type) {
  return numbers_of(read_body(body, type));
}

// ---- Linear algebra -----------------------------------------------------------------------------

TEST(StablehloSpelled, FactorsAsCholeskyDoes) {
  const auto factor = [](std::string_view numbers, bool lower) {
    return result_of(
        fmt::format("  %a = stablehlo.constant dense<{}> : tensor<2x2xf64>\n"
                    "  %r = \"stablehlo.cholesky\"(%a) <{{lower = {}}}> : (tensor<2x2xf64>) -> "
                    "tensor<2x2xf64>\n",
                    numbers, lower),
        "tensor<2x2xf64>");
  };
  // The other triangle is not read.
  EXPECT_THAT(factor("[[4.0, nan], [2.0, 5.0]]", true), testing::ElementsAre(2, 0, 1, 2));
  EXPECT_THAT(factor("[[4.0, 2.0], [nan, 5.0]]", false), testing::ElementsAre(2, 1, 0, 2));
  EXPECT_THAT(factor("[[1.0, 2.0], [2.0, 1.0]]", true),
              testing::ElementsAre(1, 0, 2, testing::IsNan()));
  EXPECT_THAT(
      read_body("  %a = stablehlo.constant dense<1.0> : tensor<2x3xf32>\n"
                "  %r = \"stablehlo.cholesky\"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n",
                "tensor<2x3xf32>"),
      refuses(ErrorCode::bad_input, "p:3:8 ... f32[2, 3] is not square"));
}

// As many rows as one likes: 2 on the diagonal, 1 below it, and NaN in the triangle that is not
// read.
TEST(StablehloSpelled, SolvesTrianglesOfManyRows) {
  constexpr int kRows = 200;
  for (const bool lower : {true, false}) {
    const std::string all = fmt::format("tensor<{0}x{0}x", kRows);
    const std::vector<double> x = result_of(
        fmt::format(
            "  %i = stablehlo.iota dim = 0 : {0}i64>\n  %j = stablehlo.iota dim = 1 : {0}i64>\n"
            "  %d = stablehlo.subtract {1} : {0}i64>\n"
            "  %c0 = stablehlo.constant dense<0> : {0}i64>\n"
            "  %c1 = stablehlo.constant dense<1> : {0}i64>\n"
            "  %z = stablehlo.constant dense<0.0> : {0}f64>\n"
            "  %one = stablehlo.constant dense<1.0> : {0}f64>\n"
            "  %two = stablehlo.constant dense<2.0> : {0}f64>\n"
            "  %nan = stablehlo.constant dense<nan> : {0}f64>\n"
            "  %p0 = stablehlo.compare EQ, %d, %c0 : ({0}i64>, {0}i64>) -> {0}i1>\n"
            "  %p1 = stablehlo.compare EQ, %d, %c1 : ({0}i64>, {0}i64>) -> {0}i1>\n"
            "  %p2 = stablehlo.compare LT, %d, %c0 : ({0}i64>, {0}i64>) -> {0}i1>\n"
            "  %a1 = stablehlo.select %p1, %one, %z : {0}i1>, {0}f64>\n"
            "  %a2 = stablehlo.select %p0, %two, %a1 : {0}i1>, {0}f64>\n"
            "  %a = stablehlo.select %p2, %nan, %a2 : {0}i1>, {0}f64>\n"
            "  %b = stablehlo.constant dense<1.0> : tensor<{2}x1xf64>\n"
            "  %r = \"stablehlo.triangular_solve\"(%a, %b) <{{left_side = true, lower = {3}, "
            "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : "
            "({0}f64>, tensor<{2}x1xf64>) -> tensor<{2}x1xf64>\n",
            all, lower ? "%i, %j" : "%j, %i", kRows, lower),
        fmt::format("tensor<{}x1xf64>", kRows));
    ASSERT_EQ(x.size(), kRows);
    double before = 0;
    for (int step = 0; step < kRows; ++step) {
      before = (1 - before) / 2;
      EXPECT_NEAR(x[static_cast<size_t>(lower ? step : kRows - 1 - step)], before, 1e-12) << step;
    }
  }
}

// As JAX writes them on a CPU; the options are letters: N 78, L 76, R 82, T 84, U 85.
TEST(StablehloSpelled, TakesCallsOfLapack) {
  constexpr std::string_view kLayouts =
      "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = "
      "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, "
      "operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : "
      "tensor<0xindex>]";
  const auto factored = [&](std::string_view numbers) {
    return parse_hlo(
        fmt::format("func.func @main() -> (tensor<2x2xf32>, tensor<i32>) {{\n"
                    "  %a = stablehlo.constant dense<{}> : tensor<2x2xf32>\n"
                    "  %r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {{mhlo.backend_config = "
                    "{{uplo = 76 : ui8}}, {}}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, "
                    "tensor<i32>)\n  return %r#0, %r#1 : tensor<2x2xf32>, tensor<i32>\n}}\n",
                    numbers, kLayouts),
        "p");
  };
  const Result<Model> good = factored("[[4.0, 2.0], [2.0, 5.0]]");
  EXPECT_THAT(numbers_of(good), testing::ElementsAre(2, 0, 1, 2));
  EXPECT_THAT(numbers_of(good, 1), testing::ElementsAre(0));
  EXPECT_THAT(numbers_of(factored("[[1.0, 2.0], [2.0, 1.0]]"), 1), testing::ElementsAre(2));
  // x turned(a) = b, a above the diagonal, and ones on it: x = [5 - 3 * 7, 7].
  EXPECT_THAT(
      result_of(fmt::format("  %a = stablehlo.constant dense<[[9.0, 3.0], [8.0, 9.0]]> : "
                            "tensor<2x2xf32>\n"
                            "  %b = stablehlo.constant dense<[[5.0, 7.0]]> : tensor<1x2xf32>\n"
                            "  %r = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) "
                            "{{mhlo.backend_config = {{diag = 85 : ui8, side = 82 : ui8, trans_x = "
                            "84 : ui8, uplo = 85 : ui8}}, {}}} : (tensor<2x2xf32>, "
                            "tensor<1x2xf32>) -> tensor<1x2xf32>\n",
                            kLayouts),
                "tensor<1x2xf32>"),
      testing::ElementsAre(-16, 7));
  EXPECT_THAT(
      numbers_of(parse_hlo(
          "HloModule m\n\nENTRY main {\n  a = f32[2,2]{1,0} constant({{2,9},{1,4}})\n"
          "  b = f32[2,1]{1,0} constant({{6},{7}})\n"
          "  ROOT r = f32[2,1]{1,0} custom-call(a, b), custom_call_target=\"lapack_strsm_ffi\", "
          "backend_config={diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}\n"
          "}\n",
          "p")),
      testing::ElementsAre(3, 1));
}

// ---- Normalization ------------------------------------------------------------------------------

constexpr std::string_view kNormed =
    "  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\n"
    "  %s = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
    "  %o = stablehlo.constant dense<[0.0, 10.0]> : tensor<2xf32>\n"
    "  %m = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>\n"
    "  %v = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
    "  %g = stablehlo.constant dense<[[1.0, 0.0], [0.0, 3.0]]> : tensor<2x2xf32>\n";

Result<Model> normed(std::string_view op, std::string_view operands, std::string_view types,
                     std::string_view results, size_t which, std::string_view type) {
  return read_body(
      fmt::format("{}  %a:{} = \"stablehlo.batch_norm_{}\"({}) <{{epsilon = 3.0 : f32, "
                  "feature_index = 1 : i64}}> : ({}) -> ({})\n"
                  "  %r = stablehlo.add %a#{}, %a#{} : {}\n",
                  kNormed, op == "inference" ? 1 : 3, op, operands, types, results, which, which,
                  type),
      type);
}

// Epsilon is 3, so that the deviation is 2. Each number is twice the result.
TEST(StablehloSpelled, NormalizesByTheBatch) {
  constexpr std::string_view kMatrix = "tensor<2x2xf32>", kVector = "tensor<2xf32>";
  const std::string all = fmt::format("{0}, {1}, {1}", kMatrix, kVector);
  const auto training = [&](size_t which, std::string_view type) {
    return numbers_of(normed("training", "%x, %s, %o", all, all, which, type));
  };
  EXPECT_THAT(training(0, kMatrix), testing::ElementsAre(-1, 18, 1, 22));
  EXPECT_THAT(training(1, kVector), testing::ElementsAre(4, 6));
  EXPECT_THAT(training(2, kVector), testing::ElementsAre(2, 2));
  const std::string five = fmt::format("{0}, {1}, {1}, {1}, {1}", kMatrix, kVector);
  EXPECT_THAT(numbers_of(normed("inference", "%x, %s, %o, %o, %v", five, kMatrix, 0, kMatrix)),
              testing::ElementsAre(1, 2 * (2 - 10) + 20, 3, 2 * (4 - 10) + 20));
  const std::string with_gradient = fmt::format("{0}, {1}, {1}, {1}, {0}", kMatrix, kVector);
  const auto gradient = [&](size_t which, std::string_view type) {
    return numbers_of(normed("grad", "%x, %s, %m, %v, %g", with_gradient, all, which, type));
  };
  // As the specification has it: scale / 2 / 2 * (2 g - sum(g) - sum(g c) c / 4), c = x - m.
  EXPECT_THAT(gradient(0, kMatrix), testing::ElementsAre(0.375, -2.25, -0.375, 2.25));
  EXPECT_THAT(gradient(1, kVector), testing::ElementsAre(-1, 3));
  EXPECT_THAT(gradient(2, kVector), testing::ElementsAre(2, 6));
  EXPECT_THAT(normed("training", "%x, %x, %o", fmt::format("{0}, {0}, {1}", kMatrix, kVector), all,
                     0, kMatrix),
              refuses(ErrorCode::bad_input, "p:8:10 ... operand 1 must be a vector"));
}

// ---- Functions ----------------------------------------------------------------------------------

TEST(StablehloSpelled, SumsZetaAndDerivesDigamma) {
  const auto of = [](std::string_view op, double a, double b) {
    return result_of(
               fmt::format("  %a = stablehlo.constant dense<{:.17g}> : tensor<f64>\n"
                           "  %b = stablehlo.constant dense<{:.17g}> : tensor<f64>\n"
                           "  %r = chlo.{} %a, %b : tensor<f64>, tensor<f64> -> tensor<f64>\n",
                           a, b, op),
               "tensor<f64>")
        .at(0);
  };
  constexpr double kApery = 1.2020569031595942;
  const double square = std::numbers::pi * std::numbers::pi;
  EXPECT_NEAR(of("zeta", 2, 1), square / 6, 1e-14);
  EXPECT_NEAR(of("zeta", 3, 0.5), 7 * kApery, 1e-13);
  EXPECT_NEAR(of("zeta", 2, -0.5), 4 + square / 2, 1e-13);
  EXPECT_EQ(of("zeta", 1, 2), std::numeric_limits<double>::infinity());
  EXPECT_EQ(of("zeta", 2, -3), std::numeric_limits<double>::infinity());
  EXPECT_THAT(of("zeta", 0.5, 2), testing::IsNan());
  EXPECT_THAT(of("zeta", 2.5, -0.5), testing::IsNan());
  EXPECT_NEAR(of("polygamma", 0, 1), -std::numbers::egamma, 1e-14);
  EXPECT_NEAR(of("polygamma", 1, 1), square / 6, 1e-13);
  EXPECT_NEAR(of("polygamma", 2, 1), -2 * kApery, 1e-13);
  EXPECT_NEAR(of("polygamma", 3, 0.5) / (square * square), 1, 1e-13);
  EXPECT_THAT(of("polygamma", 1.5, 2), testing::IsNan());
  EXPECT_THAT(of("polygamma", -1, 2), testing::IsNan());
}

TEST(StablehloSpelled, TellsInfinities) {
  const auto of = [](std::string_view op) {
    return result_of(
        fmt::format("  %x = stablehlo.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000, 1.0]> : "
                    "tensor<4xf32>\n  %r = chlo.{} %x : tensor<4xf32> -> tensor<4xi1>\n",
                    op),
        "tensor<4xi1>");
  };
  EXPECT_THAT(of("is_pos_inf"), testing::ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(of("is_neg_inf"), testing::ElementsAre(0, 1, 0, 0));
}

TEST(StablehloSpelled, PutsNewDimsFirst) {
  EXPECT_THAT(result_of("  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
                        "  %t = stablehlo.create_token : !stablehlo.token\n"
                        "  %r = \"stablehlo.broadcast\"(%x) <{broadcast_sizes = array<i64: 3>}> : "
                        "(tensor<2xi32>) -> tensor<3x2xi32>\n",
                        "tensor<3x2xi32>"),
              testing::ElementsAre(1, 2, 1, 2, 1, 2));
}

// ---- Memory -------------------------------------------------------------------------------------

// A bitcast reads memory: in the layout {0,1} the elements of a column are neighbours.
TEST(StablehloSpelled, ReadsLayoutsForBitcasts) {
  const auto of = [](std::string_view lines) {
    return parse_hlo(fmt::format("HloModule m\n\nENTRY main {{\n{}\n}}\n", lines), "p");
  };
  constexpr std::string_view kColumns = "  x = f32[2,3]{0,1} constant({{1,2,3},{4,5,6}})\n";
  EXPECT_THAT(numbers_of(of(fmt::format("{}  ROOT r = f32[6]{{0}} bitcast(x)", kColumns))),
              testing::ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(numbers_of(of("  x = f32[6]{0} constant({1,2,3,4,5,6})\n"
                            "  ROOT r = f32[2,3]{0,1} bitcast(x)")),
              testing::ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(numbers_of(of("  x = s32[2,1,2]{2,0,1} constant({{{1,2}},{{3,4}}})\n"
                            "  ROOT r = s32[2,2]{0,1} bitcast(x)")),
              testing::ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(numbers_of(of("  x = f32[1]{0} constant({1})\n  ROOT r = s32[1]{0} bitcast(x)")),
              testing::ElementsAre(0x3F800000));
  EXPECT_THAT(numbers_of(of("  x = f32[] constant(1)\n  ROOT r = s32[] bitcast(x)")),
              testing::ElementsAre(0x3F800000));
  EXPECT_THAT(of("  x = f32[2]{0} constant({1,2})\n  ROOT r = f32[3]{0} bitcast(x)"),
              refuses(ErrorCode::bad_input, "p:5 ... f32[2] has 2 elements, but f32[3] has 3"));
  EXPECT_THAT(of("  x = f32[8]{0} parameter(0)\n  ROOT r = f32[2,4]{1,0:T(8,128)} bitcast(x)"),
              refuses(ErrorCode::unsupported, "p:5 ... layout {1,0:T(8,128)}"));
  EXPECT_THAT(of("  x = f32[8]{0} parameter(0)\n  ROOT r = f32[2,4]{5,0} bitcast(x)"),
              refuses(ErrorCode::bad_input, "p:5 ... dim 5 is outside of rank 2"));
}

}  // namespace
}  // namespace hone::HONE_FILE
