#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Ops of opsets 25 to 27.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(OnnxNewest, CumProdRunsAlongAnAxis) {
  const Tensor x = integers({2, 3}, {1, 2, 3, 4, 5, 6}, DType::i32);
  const Operand axis = constant(integers({}, {1}));
  EXPECT_THAT(numbers(run_node("CumProd", 26, {x, axis})), ElementsAre(1, 2, 6, 4, 20, 120));
  EXPECT_THAT(numbers(run_node("CumProd", 26, {x, axis}, {{"exclusive", 1}, {"reverse", 1}})),
              ElementsAre(6, 3, 1, 30, 6, 1));
  EXPECT_THAT(import_error("CumProd", 25, {x, axis}), says("opset 25"));
}

TEST(OnnxNewest, BitCastKeepsPatterns) {
  const Tensor x = reals({3}, {1, -0.0, 0});
  EXPECT_THAT(numbers(run_node("BitCast", 26, {x}, {{"to", 6}})),
              ElementsAre(1065353216, -2147483648., 0));
  const Tensor bytes = integers({3}, {0, 1, 6}, DType::u8);
  EXPECT_THAT(numbers(run_node("BitCast", 26, {bytes}, {{"to", 9}})), ElementsAre(0, 1, 1));
  EXPECT_THAT(import_error("BitCast", 26, {x}, {{"to", 7}}), HasSubstr("32 bits, i64 of 64"));
}

// The standard leaves it open; its cases and ONNX Runtime agree.
TEST(OnnxNewest, CastToFourBitsKeepsTheLowest) {
  const Tensor x = reals({4}, {-9, 7, 8, 1.5});
  EXPECT_THAT(numbers(run_node("Cast", 25, {x}, {{"to", 22}})), ElementsAre(7, 7, -8, 1));
}

// One head of one key: the state is s = exp(g) s + beta k (v - exp(g) s k).
TEST(OnnxNewest, LinearAttentionUpdatesItsState) {
  const auto steps = [](double a, double b) { return reals({1, 2, 1}, {a, b}); };
  const Tensor q = steps(1, 1), k = steps(1, 2), v = steps(3, 5);
  const Attributes heads = {{"q_num_heads", 1}, {"kv_num_heads", 1}};
  const auto run = [&](const char* rule, Operand decay, Operand beta) {
    Attributes attributes = heads;
    attributes.push_back({"update_rule", rule});
    return run_outputs("LinearAttention", 27, {q, k, v, none(), decay, beta}, attributes,
                       {.outputs = 2});
  };
  EXPECT_THAT(numbers(run("linear", none(), none())[0]), ElementsAre(3, 13));
  EXPECT_THAT(numbers(run("delta", none(), steps(1, .5))[0]), ElementsAre(3, 2));
  const double half = std::log(.5);
  EXPECT_NEAR(numbers(run("gated", steps(0, half), none())[0])[1], 11.5, 1e-5);
  const std::vector<Tensor> both = run("gated_delta", steps(0, half), steps(1, 1));
  EXPECT_NEAR(numbers(both[0])[1], 1.5 + 2 * (5 - 3), 1e-5);
  EXPECT_EQ(both[1].type().to_string(), "f32[1, 1, 1, 1]");
  EXPECT_THAT(import_error("LinearAttention", 27, {q, k, v}, heads, {.outputs = 2}),
              HasSubstr("needs decay"));
}

TEST(OnnxNewest, CausalConvRemembersItsInputs) {
  const Tensor x = reals({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor w = reals({2, 1, 2}, {10, 1, 0, 1}), bias = reals({2}, {0, .5});
  std::vector<Tensor> y = run_outputs("CausalConvWithState", 27, {x, w, bias}, {}, {.outputs = 2});
  EXPECT_THAT(numbers(y[0]), ElementsAre(1, 12, 23, 4.5, 5.5, 6.5));
  EXPECT_THAT(numbers(y[1]), ElementsAre(3, 6));
  y = run_outputs("CausalConvWithState", 27, {x, w, none(), reals({1, 2, 1}, {9, 9})}, {},
                  {.outputs = 2});
  EXPECT_THAT(numbers(y[0]), ElementsAre(91, 12, 23, 4, 5, 6));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
