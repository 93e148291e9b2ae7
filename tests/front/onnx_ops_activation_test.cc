#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Pointwise;

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(testing::DoubleNear(1e-5), expected);
}

TEST(OnnxActivation, SoftmaxMergesTrailingDimsBeforeVersion13) {
  Tensor x = reals({1, 2, 2}, {0, 0, 0, std::log(3.0)});
  for (bool symbolic : {false, true}) {
    NodeOptions options = {.symbolic = symbolic};
    // All four count as one row of sum 6.
    EXPECT_THAT(numbers(run_node("Softmax", 11, {x}, {}, options)),
                near({1 / 6.0, 1 / 6.0, 1 / 6.0, 3 / 6.0}));
    EXPECT_THAT(numbers(run_node("Softmax", 13, {x}, {}, options)), near({0.5, 0.5, 0.25, 0.75}));
    EXPECT_THAT(numbers(run_node("Softmax", 13, {x}, {{"axis", 1}}, options)),
                near({0.5, 0.25, 0.5, 0.75}));
    EXPECT_THAT(numbers(run_node("LogSoftmax", 1, {x}, {{"axis", 2}}, options)),
                near({std::log(0.5), std::log(0.5), std::log(0.25), std::log(0.75)}));
    EXPECT_EQ(numbers(run_node("Hardmax", 11, {x}, {}, options)), Numbers({0, 0, 0, 1}));
    EXPECT_EQ(numbers(run_node("Hardmax", 13, {x}, {}, options)), Numbers({1, 0, 0, 1}));
  }
  EXPECT_THAT(import_error("Softmax", 13, {x}, {{"axis", 3}}),
              HasSubstr("axis 3 is outside rank 3"));
}

TEST(OnnxActivation, OldPReluSlopesAreForChannels) {
  Tensor x = reals({1, 2, 2}, {-1, 2, -3, -4}), slope = reals({2}, {0.5, 10});
  EXPECT_EQ(numbers(run_node("PRelu", 6, {x, slope})), Numbers({-0.5, 2, -30, -40}));
  EXPECT_EQ(numbers(run_node("PRelu", 9, {x, slope})), Numbers({-0.5, 2, -1.5, -40}));
  EXPECT_THAT(import_error("PRelu", 9, {slope, x}), HasSubstr("does not stretch"));
}

TEST(OnnxActivation, Defaults) {
  Tensor x = reals({2}, {-1, 2});
  double down = std::exp(-1.0) - 1;
  EXPECT_THAT(numbers(run_node("Elu", 6, {x})), near({down, 2}));
  EXPECT_THAT(numbers(run_node("Elu", 1, {x}, {{"alpha", 2.0}, {"consumed_inputs", Ints{0}}})),
              near({2 * down, 2}));
  EXPECT_THAT(numbers(run_node("Celu", 12, {x}, {{"alpha", 2.0}})),
              near({2 * (std::exp(-0.5) - 1), 2}));
  EXPECT_THAT(numbers(run_node("Selu", 22, {x})), near({1.6732632 * 1.050701 * down, 2.101402}));
  EXPECT_THAT(numbers(run_node("LeakyRelu", 16, {x})), near({-0.01, 2}));
  EXPECT_THAT(numbers(run_node("HardSigmoid", 22, {x})), near({0.3, 0.9}));
  EXPECT_THAT(numbers(run_node("ThresholdedRelu", 22, {reals({2}, {1, 1.5})})), near({0, 1.5}));
  EXPECT_THAT(numbers(run_node("HardSwish", 22, {x})), near({-1 / 3.0, 5 / 3.0}));
  EXPECT_THAT(numbers(run_node("Mish", 18, {x})), near({-std::tanh(std::log1p(std::exp(-1.0))),
                                                        2 * std::tanh(std::log1p(std::exp(2.0)))}));
}

TEST(OnnxActivation, GeluAndSwishTakeTheirForms) {
  Tensor x = reals({1}, {1});
  double erf = 0.5 * (1 + std::erf(std::sqrt(0.5)));
  double tanh = 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * 1.044715));
  EXPECT_THAT(numbers(run_node("Gelu", 20, {x})), near({erf}));
  EXPECT_THAT(numbers(run_node("Gelu", 20, {x}, {{"approximate", "tanh"}})), near({tanh}));
  EXPECT_THAT(import_error("Gelu", 20, {x}, {{"approximate", "fast"}}), HasSubstr("'fast'"));
  EXPECT_THAT(numbers(run_node("Swish", 24, {x})), near({1 / (1 + std::exp(-1.0))}));
  EXPECT_THAT(numbers(run_node("Swish", 24, {x}, {{"alpha", 2.0}})),
              near({1 / (1 + std::exp(-2.0))}));
  EXPECT_THAT(import_error("Swish", 23, {x}), says("opset 23"));
}

TEST(OnnxActivation, ShrinkCutsIntegersTowardZero) {
  Tensor x = integers({4}, {-3, -1, 1, 3}, DType::i32);
  EXPECT_EQ(numbers(run_node("Shrink", 9, {x}, {{"lambd", 1.5}, {"bias", 1.5}})),
            Numbers({-1, 0, 0, 1}));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
