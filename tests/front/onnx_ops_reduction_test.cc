#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

Operand axes(const Ints& values) {
  return constant(integers({static_cast<int64_t>(values.size())}, values));
}

TEST(OnnxReduction, AxesAreAnAttributeOrAnOperand) {
  Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  for (bool symbolic : {false, true}) {
    NodeOptions options = {.symbolic = symbolic};
    Tensor y = run_node("ReduceMax", 13, {x}, {{"axes", Ints{-1}}, {"keepdims", 0}}, options);
    EXPECT_EQ(y.type(), type_of(DType::f32, {2}));
    EXPECT_EQ(numbers(y), Numbers({3, 6}));
    y = run_node("ReduceMax", 18, {x, axes({0})}, {}, options);
    EXPECT_EQ(y.type(), type_of(DType::f32, {1, 3}));
    EXPECT_EQ(numbers(y), Numbers({4, 5, 6}));
    EXPECT_EQ(numbers(run_node("ReduceMean", 18, {x, axes({0, 1})}, {}, options)), Numbers({3.5}));
  }
  EXPECT_EQ(numbers(run_node("ReduceSum", 11, {x}, {{"axes", Ints{0}}})), Numbers({5, 7, 9}));
  EXPECT_THAT(import_error("ReduceSum", 13, {x}, {{"axes", Ints{0}}}), HasSubstr("'axes'"));
  EXPECT_THAT(import_error("ReduceSum", 13, {x, axes({2})}), HasSubstr("axis 2 is outside rank 2"));
  EXPECT_THAT(import_error("ReduceSum", 13, {x, axes({1, -1})}),
              HasSubstr("axis 1 is named twice"));
}

TEST(OnnxReduction, NoAxesMeanAllOrNone) {
  Tensor x = reals({2}, {3, 4});
  EXPECT_EQ(numbers(run_node("ReduceL2", 18, {x})), Numbers({5}));
  EXPECT_EQ(numbers(run_node("ReduceL2", 18, {x, axes({})})), Numbers({5}));
  Attributes noop = {{"noop_with_empty_axes", 1}};
  EXPECT_EQ(numbers(run_node("ReduceSumSquare", 18, {x}, noop)), Numbers({9, 16}));
  EXPECT_EQ(numbers(run_node("ReduceL1", 18, {reals({2}, {-3, 4})}, noop)), Numbers({3, 4}));
  EXPECT_EQ(numbers(run_node("ReduceLogSumExp", 18, {x}, noop)), Numbers({3, 4}));
  EXPECT_EQ(numbers(run_node("ReduceProd", 18, {reals({}, {7})})), Numbers({7}));
}

TEST(OnnxReduction, NothingGivesTheIdentity) {
  Tensor x = reals({2, 0}, {});
  auto reduced = [&](std::string_view op) { return numbers(run_node(op, 20, {x, axes({1})}))[0]; };
  EXPECT_EQ(reduced("ReduceSum"), 0);
  EXPECT_EQ(reduced("ReduceProd"), 1);
  EXPECT_EQ(reduced("ReduceMax"), -kInf);
  EXPECT_EQ(reduced("ReduceMin"), kInf);
  EXPECT_EQ(reduced("ReduceLogSum"), -kInf);
  EXPECT_EQ(reduced("ReduceLogSumExp"), -kInf);
  EXPECT_EQ(numbers(run_node("ReduceMin", 20, {integers({0}, {}, DType::i8)})), Numbers({127}));
}

TEST(OnnxReduction, BoolsAndIntegers) {
  Tensor bools = integers({2, 2}, {1, 0, 0, 0}, DType::boolean);
  EXPECT_EQ(numbers(run_node("ReduceMax", 20, {bools, axes({1})})), Numbers({1, 0}));
  EXPECT_EQ(numbers(run_node("ReduceMin", 20, {bools, axes({0})})), Numbers({0, 0}));
  EXPECT_EQ(numbers(run_node("ReduceL2", 18, {integers({2}, {1, 2})})), Numbers({2}));
}

TEST(OnnxReduction, LogSumExpDoesNotOverflow) {
  EXPECT_THAT(numbers(run_node("ReduceLogSumExp", 13, {reals({2}, {1000, 1000})})),
              ElementsAre(DoubleNear(1000 + std::log(2.0), 1e-3)));
  EXPECT_EQ(numbers(run_node("ReduceLogSumExp", 13, {reals({2}, {kInf, 1})})), Numbers({kInf}));
  EXPECT_EQ(numbers(run_node("ReduceLogSumExp", 13, {reals({2}, {-kInf, -kInf})})),
            Numbers({-kInf}));
}

TEST(OnnxReduction, ArgMaxOfEquals) {
  Tensor x = reals({2, 3}, {1, 5, 5, -kInf, -kInf, -kInf});
  for (bool symbolic : {false, true}) {
    NodeOptions options = {.symbolic = symbolic};
    EXPECT_EQ(numbers(run_node("ArgMax", 13, {x}, {{"axis", 1}}, options)), Numbers({1, 0}));
    EXPECT_EQ(
        numbers(run_node("ArgMax", 13, {x}, {{"axis", 1}, {"select_last_index", 1}}, options)),
        Numbers({2, 2}));
    EXPECT_EQ(numbers(run_node("ArgMin", 1, {x}, {}, options)), Numbers({1, 1, 1}));
  }
  Tensor u = integers({2}, {-1, -1}, DType::u64);  // the highest
  EXPECT_EQ(numbers(run_node("ArgMin", 13, {u}, {}, {.symbolic = true})), Numbers({0}));
  EXPECT_THAT(import_error("ArgMax", 11, {x}, {{"select_last_index", 1}}),
              HasSubstr("'select_last_index'"));
}

TEST(OnnxReduction, CumSum) {
  Tensor x = integers({2, 2}, {1, 2, 3, 4}, DType::i32);
  Operand axis = constant(integers({}, {-1}));
  EXPECT_EQ(numbers(run_node("CumSum", 14, {x, axis}, {{"exclusive", 1}, {"reverse", 1}})),
            Numbers({2, 0, 4, 0}));
  EXPECT_THAT(import_error("CumSum", 14, {x, axes({0, 1})}), HasSubstr("there are 2"));
}

TEST(OnnxReduction, Normalizations) {
  Tensor x = reals({2, 2}, {3, -4, 0, 0});
  EXPECT_THAT(numbers(run_node("LpNormalization", 22, {x})),
              ElementsAre(DoubleNear(0.6, 1e-6), DoubleNear(-0.8, 1e-6), 0, 0));
  EXPECT_THAT(numbers(run_node("LpNormalization", 1, {x}, {{"p", 1}})),
              ElementsAre(DoubleNear(3 / 7.0, 1e-6), DoubleNear(-4 / 7.0, 1e-6), 0, 0));
  EXPECT_THAT(import_error("LpNormalization", 1, {x}, {{"p", 3}}), HasSubstr("p is 3"));
  EXPECT_THAT(numbers(run_node("MeanVarianceNormalization", 13, {x}, {{"axes", Ints{1}}})),
              ElementsAre(DoubleNear(1, 1e-6), DoubleNear(-1, 1e-6), 0, 0));
  EXPECT_THAT(import_error("MeanVarianceNormalization", 9, {x}), HasSubstr("outside rank 2"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
