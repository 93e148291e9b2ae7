#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

// Small whole numbers, so that all of the arithmetic is exact.
const Tensor kA = reals({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kB = reals({3, 2}, {1, 0, 2, 1, 0, 3});
// kA kB = [[5, 11], [14, 23]]

TEST(OnnxMatMul, Ranks) {
  EXPECT_EQ(numbers(run_node("MatMul", 1, {kA, kB})), Numbers({5, 11, 14, 23}));
  const Tensor row = run_node("MatMul", 13, {reals({3}, {1, 2, 3}), kB});
  EXPECT_EQ(row.type(), type_of(DType::f32, {2}));
  EXPECT_EQ(numbers(row), Numbers({5, 11}));
  const Tensor column = run_node("MatMul", 13, {kA, reals({3}, {1, 2, 0})});
  EXPECT_EQ(numbers(column), Numbers({5, 14}));
  EXPECT_EQ(numbers(run_node("MatMul", 13, {reals({3}, {1, 2, 3}), reals({3}, {1, 0, 2})})),
            Numbers({7}));
  EXPECT_THAT(import_error("MatMul", 13, {reals({}, {1}), kB}), HasSubstr("A"));
  EXPECT_NE(import_error("MatMul", 13, {kA, kA}), "");
}

TEST(OnnxMatMul, BatchesBroadcastAlsoWithSymbols) {
  const Tensor batch = reals({2, 1, 2}, {1, 1, 2, 0});
  const Tensor many = reals({3, 1, 2, 1}, {1, 2, 3, 4, 5, 6});
  for (bool symbolic : {false, true}) {
    const Tensor y = run_node("MatMul", 9, {batch, many}, {}, {.symbolic = symbolic});
    EXPECT_EQ(y.type(), type_of(DType::f32, {3, 2, 1, 1}));
    EXPECT_EQ(numbers(y), Numbers({3, 2, 7, 6, 11, 10}));
  }
}

TEST(OnnxMatMul, IntegersWrap) {
  const Tensor x = integers({1, 1}, {int64_t{1} << 31}, DType::u32);
  EXPECT_EQ(numbers(run_node("MatMul", 9, {x, integers({1, 1}, {3}, DType::u32)})),
            Numbers({2147483648.0}));
}

TEST(OnnxGemm, FactorsAndTransposes) {
  const Tensor c = reals({2}, {1, -1});
  EXPECT_EQ(numbers(run_node("Gemm", 7, {kA, kB, c}, {{"alpha", 2.0}, {"beta", 3.0}})),
            Numbers({13, 19, 31, 43}));
  const Tensor at = reals({3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor bt = reals({2, 3}, {1, 2, 0, 0, 1, 3});
  EXPECT_EQ(numbers(run_node("Gemm", 13, {at, bt}, {{"transA", 1}, {"transB", 1}})),
            Numbers({5, 11, 14, 23}));
  EXPECT_EQ(numbers(run_node("Gemm", 11, {kA, kB, reals({2, 1}, {1, 2})})),
            Numbers({6, 12, 16, 25}));
  const Tensor nan = reals({}, {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(numbers(run_node("Gemm", 13, {kA, kB, nan}, {{"beta", 0.0}})),
            Numbers({5, 11, 14, 23}));
}

TEST(OnnxGemm, OldVersionsBroadcastWhenTheyAreTold) {
  const Tensor c = reals({2}, {1, -1});
  EXPECT_EQ(numbers(run_node("Gemm", 6, {kA, kB, c}, {{"broadcast", 1}})),
            Numbers({6, 10, 15, 22}));
  EXPECT_THAT(import_error("Gemm", 6, {kA, kB, c}),
              says("C ... f32[2] ... product ... f32[2, 2] ... broadcast"));
  EXPECT_NE(import_error("Gemm", 7, {kA, kB, c}, {{"broadcast", 1}}), "");
}

TEST(OnnxGemm, IntegersWithFractionalFactors) {
  // 0.5 * (5, 11, 14, 23) toward zero.
  const Tensor a = integers({2, 3}, {1, 2, 3, 4, 5, 6}, DType::i32);
  const Tensor b = integers({3, 2}, {1, 0, 2, 1, 0, 3}, DType::i32);
  EXPECT_EQ(numbers(run_node("Gemm", 9, {a, b, integers({1}, {0}, DType::i32)}, {{"alpha", 0.5}})),
            Numbers({2, 5, 7, 11}));
}

TEST(OnnxGemm, SymbolsAndErrors) {
  EXPECT_EQ(numbers(run_node("Gemm", 13, {kA, kB, reals({2}, {1, 2})}, {}, {.symbolic = true})),
            Numbers({6, 13, 15, 25}));
  EXPECT_THAT(import_error("Gemm", 13, {reals({3}, {1, 2, 3}), kB}), HasSubstr("A"));
  EXPECT_NE(import_error("Gemm", 13, {kA, kB, reals({3}, {1, 2, 3})}), "");
}

TEST(OnnxMatMulInteger, ZeroPointsPerTensorRowAndColumn) {
  const Tensor a = integers({2, 2}, {1, 2, 3, 250}, DType::u8);
  const Tensor b = integers({2, 2}, {-1, 2, 3, -128}, DType::i8);
  EXPECT_EQ(numbers(run_node("MatMulInteger", 10, {a, b})), Numbers({5, -254, 747, -31994}));
  // Rows less 1 and 2, columns less 0 and 1: [[0, 1], [1, 248]] [[-1, 1], [3, -129]]
  const Tensor rows = integers({2}, {1, 2}, DType::u8), columns = integers({2}, {0, 1}, DType::i8);
  EXPECT_EQ(numbers(run_node("MatMulInteger", 10, {a, b, rows, columns})),
            Numbers({3, -129, 743, -31991}));
  EXPECT_EQ(numbers(run_node("MatMulInteger", 10, {a, b, none(), integers({1}, {1}, DType::i8)})),
            Numbers({1 * -2 + 2 * 2, 1 - 258, -6 + 500, 3 - 250 * 129}));
}

TEST(OnnxEinsum, TermsAndErrors) {
  EXPECT_EQ(numbers(run_node("Einsum", 12, {kA, kB}, {{"equation", "ij, jk -> ki"}})),
            Numbers({5, 14, 11, 23}));
  EXPECT_EQ(numbers(run_node("Einsum", 12, {kA, kB}, {{"equation", "ij,jk"}}, {.symbolic = true})),
            Numbers({5, 11, 14, 23}));
  EXPECT_THAT(import_error("Einsum", 12, {kA}), HasSubstr("equation"));
  EXPECT_THAT(import_error("Einsum", 12, {kA}, {{"equation", "ij,jk->ik"}}), HasSubstr("2 terms"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
