#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

// Random bits are those of XLA; scatters with bodies of any form are loops.

namespace hone::HONE_FILE {
namespace {

std::string results_of(std::string_view text) {
  const Result<Model> model = parse_hlo(text, "p");
  if (!model.ok()) return model.error().to_string();
  const Result<std::vector<Tensor>> results = evaluate_model(*model, {});
  if (!results.ok()) return results.error().to_string();
  std::vector<std::string> all;
  for (const Tensor& one : *results)
    for (int64_t i = 0; i < one.elements(); ++i)
      all.push_back(is_real(one.dtype())
                        ? format_double(one.real_at(i))
                        : fmt::format("{:x}", static_cast<uint64_t>(one.integer_at(i))));
  return join(all, " ");
}

// The new state, then the bits.
std::string bits_of(std::string_view algorithm, int words, std::string_view type) {
  const std::string_view state = words == 2 ? "[0x0123456789abcdef, 0xfedcba9876543210]"
                                            : "[0x0123456789abcdef, 0xfedcba9876543210, 7]";
  return results_of(fmt::format(
      "func.func @main() -> (tensor<{1}xui64>, {2}) {{\n"
      "  %s = stablehlo.constant dense<{3}> : tensor<{1}xui64>\n"
      "  %0:2 = stablehlo.rng_bit_generator %s, algorithm = {0} : (tensor<{1}xui64>) -> "
      "(tensor<{1}xui64>, {2})\n"
      "  return %0#0, %0#1 : tensor<{1}xui64>, {2}\n}}\n",
      algorithm, words, type, state));
}

// All numbers here are those that XLA 0.10 gives on a CPU.
TEST(StablehloRandom, IsThatOfXla) {
  EXPECT_EQ(bits_of("PHILOX", 2, "tensor<5xui32>"),
            "123456789abcdef fedcba9876543212 1ec53d42 cfa390b5 f2235702 e71ff917 cb472319");
  EXPECT_EQ(bits_of("PHILOX", 3, "tensor<2x3xui64>"),
            "123456789abcdef fedcba9876543213 7 ec0ecc54ff09c848 217d171d9c671863 93abeebc180d2de "
            "e04d69902d1771c0 c77d1da858e25118 972f4257ce8fe539");
  EXPECT_EQ(bits_of("PHILOX", 2, "tensor<4xui16>"),
            "123456789abcdef fedcba9876543211 3d42 90b5 5702 f917");
  EXPECT_EQ(bits_of("DEFAULT", 2, "tensor<5xui8>"),
            "123456789abcdef fedcba9876543212 42 b5 2 17 19");
  EXPECT_EQ(bits_of("THREE_FRY", 2, "tensor<5xui32>"),
            "123456789abcdef fedcba9876543213 aed4a37f 1130d111 c3cc4d02 798e402e aee5264e");
  EXPECT_EQ(bits_of("THREE_FRY", 2, "tensor<2x3xui32>"),
            "123456789abcdef fedcba9876543213 aed4a37f c3cc4d02 aee5264e 1130d111 798e402e "
            "b089da7a");
  EXPECT_EQ(bits_of("THREE_FRY", 2, "tensor<4xui8>"),
            "123456789abcdef fedcba9876543212 7f 11 2 2e");
  EXPECT_EQ(bits_of("THREE_FRY", 2, "tensor<2xui64>"),
            "123456789abcdef fedcba9876543212 1130d111aed4a37f 798e402ec3cc4d02");
}

TEST(StablehloRandom, CarriesIntoTheHighHalfOfTheCounter) {
  const std::string bits = results_of(
      "func.func @main() -> tensor<3xui64> {\n"
      "  %s = stablehlo.constant dense<[1, 0xffffffffffffffff, 7]> : tensor<3xui64>\n"
      "  %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> "
      "(tensor<3xui64>, tensor<8xui32>)\n"
      "  return %0#0 : tensor<3xui64>\n}\n");
  EXPECT_EQ(bits, "1 1 8");
}

// old + 2 * update, and the number of updates; the place 7 is outside.
TEST(StablehloScatter, TakesAnyBodyAndSeveralOperands) {
  EXPECT_EQ(
      results_of(
          "func.func @main() -> (tensor<3xf32>, tensor<3xi32>) {\n"
          "  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n"
          "  %n = stablehlo.constant dense<0> : tensor<3xi32>\n"
          "  %i = stablehlo.constant dense<[[2], [0], [7], [2]]> : tensor<4x1xi32>\n"
          "  %u = stablehlo.constant dense<[10.0, 20.0, 30.0, 40.0]> : tensor<4xf32>\n"
          "  %k = stablehlo.constant dense<1> : tensor<4xi32>\n"
          "  %0:2 = \"stablehlo.scatter\"(%x, %n, %i, %u, %k) <{scatter_dimension_numbers = "
          "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
          "index_vector_dim = 1>}> ({\n"
          "  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):\n"
          "    %1 = stablehlo.add %c, %c : tensor<f32>\n"
          "    %2 = stablehlo.add %a, %1 : tensor<f32>\n"
          "    %3 = stablehlo.add %b, %d : tensor<i32>\n"
          "    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>\n"
          "  }) : (tensor<3xf32>, tensor<3xi32>, tensor<4x1xi32>, tensor<4xf32>, tensor<4xi32>) -> "
          "(tensor<3xf32>, tensor<3xi32>)\n"
          "  return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>\n}\n"),
      "41 2 103 1 0 2");
}

// Windows of two elements; the second one does not fit, and is dropped whole.
TEST(StablehloScatter, DropsWholeWindowsWithAnyBody) {
  EXPECT_EQ(
      results_of("func.func @main() -> tensor<4xi32> {\n"
                 "  %x = stablehlo.constant dense<[7, 7, 7, 7]> : tensor<4xi32>\n"
                 "  %i = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>\n"
                 "  %u = stablehlo.constant dense<[[3, 5], [1, 1]]> : tensor<2x2xi32>\n"
                 "  %r = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = "
                 "#stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], "
                 "index_vector_dim = 1>}> ({\n"
                 "  ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
                 "    %1 = stablehlo.subtract %a, %b : tensor<i32>\n"
                 "    stablehlo.return %1 : tensor<i32>\n"
                 "  }) : (tensor<4xi32>, tensor<2x1xi32>, tensor<2x2xi32>) -> tensor<4xi32>\n"
                 "  return %r : tensor<4xi32>\n}\n"),
      "7 4 2 7");
}

}  // namespace
}  // namespace hone::HONE_FILE
