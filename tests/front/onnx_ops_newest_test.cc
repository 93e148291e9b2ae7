#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Ops of opsets 25 to 28.

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

TEST(OnnxNewest, ModOfRealsHasTheSignOfTheDivisor) {
  const double inf = HUGE_VAL;
  const Tensor a = reals({9}, {5.5, -5.5, 5.5, -5.5, -0.0, 4, 3, -3, inf});
  const Tensor b = reals({9}, {2, 2, -2, -2, 2, -2, -inf, -inf, 2});
  const Numbers mod = numbers(run_node("Mod", 28, {a, b}));
  EXPECT_EQ(Numbers(mod.begin(), mod.end() - 1), Numbers({1.5, .5, -.5, -1.5, 0, 0, -inf, -3}));
  EXPECT_FALSE(std::signbit(mod[4]));
  EXPECT_TRUE(std::signbit(mod[5]));
  EXPECT_TRUE(std::isnan(mod[8]));
  EXPECT_THAT(import_error("Mod", 27, {a, b}), HasSubstr("fmod = 1"));
}

TEST(OnnxNewest, BitShiftsOfSignedNumbersKeepTheSign) {
  const Tensor a = integers({5}, {-8, -8, 8, -8, 1}, DType::i32);
  const Tensor by = integers({5}, {1, 40, 40, -1, 31}, DType::i32);
  EXPECT_THAT(numbers(run_node("BitShift", 28, {a, by}, {{"direction", "RIGHT"}})),
              ElementsAre(-4, -1, 0, -1, 0));
  EXPECT_THAT(numbers(run_node("BitShift", 28, {a, by}, {{"direction", "LEFT"}})),
              ElementsAre(-16, 0, 0, 0, -2147483648.));
}

// Two channels of one block.
TEST(OnnxNewest, SpaceToDepthOrdersByColumnsFirst) {
  const Tensor x = reals({1, 2, 2, 2}, {0, 1, 2, 3, 10, 11, 12, 13});
  const Attributes block = {{"blocksize", 2}};
  EXPECT_THAT(numbers(run_node("SpaceToDepth", 28, {x}, block)),
              ElementsAre(0, 10, 1, 11, 2, 12, 3, 13));
  EXPECT_THAT(numbers(run_node("SpaceToDepth", 28, {x}, {{"blocksize", 2}, {"mode", "CRD"}})),
              ElementsAre(0, 1, 2, 3, 10, 11, 12, 13));
  EXPECT_THAT(import_error("SpaceToDepth", 28, {x}, {{"blocksize", 2}, {"mode", "RCD"}}),
              HasSubstr("RCD"));
}

TEST(OnnxNewest, SwiGluMultipliesByTheGate) {
  const Tensor gate = reals({2}, {1, -2}), x = reals({2}, {3, 5});
  const Numbers y = numbers(run_node("SwiGLU", 28, {gate, x}, {{"alpha", 2.0}}));
  EXPECT_NEAR(y[0], 3 / (1 + std::exp(-2.)), 1e-6);
  EXPECT_NEAR(y[1], -10 / (1 + std::exp(4.)), 1e-6);
  EXPECT_THAT(import_error("SwiGLU", 28, {gate, reals({1}, {3})}), HasSubstr("f32[1]"));
  EXPECT_THAT(import_error("SwiGLU", 27, {gate, x}), says("opset 27"));
}

TEST(OnnxNewest, TypesOfSixBitsAreRefusedByName) {
  EXPECT_THAT(import_error("Cast", 28, {reals({1}, {1})}, {{"to", 27}}), HasSubstr("FLOAT6E2M3"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
