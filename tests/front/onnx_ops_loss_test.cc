#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// The standard's own example, two places of three classes each in two batches.
const Tensor kScores = reals({2, 3, 2}, {1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2});
const Tensor kTarget = integers({2, 2}, {2, 1, 0, 2});
const Tensor kWeights = reals({3}, {0.2, 0.3, 0.1});

TEST(OnnxLoss, NegativeLogLikelihood) {
  auto loss = [&](const std::vector<Operand>& operands, const char* reduction, bool symbolic) {
    return numbers(run_node("NegativeLogLikelihoodLoss", 13, operands, {{"reduction", reduction}},
                            {.symbolic = symbolic}));
  };
  for (bool symbolic : {false, true}) {
    EXPECT_EQ(loss({kScores, kTarget}, "none", symbolic), Numbers({-3, -2, 0, -2}));
    EXPECT_THAT(loss({kScores, kTarget, kWeights}, "sum", symbolic),
                ElementsAre(DoubleNear(-1.1, 1e-6)));
    EXPECT_THAT(loss({kScores, kTarget, kWeights}, "mean", symbolic),
                ElementsAre(DoubleNear(-1.1 / 0.7, 1e-6)));
    EXPECT_EQ(loss({kScores, kTarget}, "mean", symbolic), Numbers({-1.75}));
  }
}

TEST(OnnxLoss, IgnoredPlacesDoNotCount) {
  Tensor target = integers({2, 2}, {2, -1, 0, -1}, DType::i32);
  Attributes ignore = {{"ignore_index", -1}};
  EXPECT_EQ(numbers(run_node("NegativeLogLikelihoodLoss", 22, {kScores, target}, ignore)),
            Numbers({-1.5}));
  // -(3 * 0.1 + 0 * 0.2) / (0.1 + 0.2)
  EXPECT_THAT(
      numbers(run_node("NegativeLogLikelihoodLoss", 12, {kScores, target, kWeights}, ignore)),
      ElementsAre(DoubleNear(-1, 1e-6)));
}

TEST(OnnxLoss, SoftmaxCrossEntropy) {
  Tensor scores = reals({1, 2}, {0, std::log(3.0)}), target = integers({1}, {1});
  std::vector<Tensor> y =
      run_outputs("SoftmaxCrossEntropyLoss", 13, {scores, target}, {}, {.outputs = 2});
  EXPECT_THAT(numbers(y[0]), ElementsAre(DoubleNear(-std::log(0.75), 1e-6)));
  EXPECT_THAT(numbers(y[1]),
              ElementsAre(DoubleNear(std::log(0.25), 1e-6), DoubleNear(std::log(0.75), 1e-6)));
}

TEST(OnnxLoss, Refusals) {
  auto error = [](const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    return import_error("SoftmaxCrossEntropyLoss", 13, operands, attributes);
  };
  EXPECT_THAT(error({kScores, integers({2}, {0, 0})}),
              says("target ... i64[2] ... scores f32[2, 3, 2] ... [2, 2]"));
  EXPECT_THAT(error({reals({2}, {0, 0}), integers({2}, {0, 0})}), HasSubstr("must have rank 2"));
  EXPECT_THAT(error({kScores, kTarget, reals({2}, {1, 1})}),
              says("weights ... f32[2] ... 3 classes"));
  EXPECT_THAT(error({kScores, kTarget}, {{"reduction", "max"}}), HasSubstr("reduction is 'max'"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
