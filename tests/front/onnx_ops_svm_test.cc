#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Support vector machines of ai.onnx.ml. Expected values come from ONNX Runtime 1.23.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Words = std::vector<std::string>;

const Tensor kRows = reals({4, 2}, {.3, .7, 1, -2, 0, 0, -1, .25});
const Numbers kVectors = {0, 1, 1, 0, 1, 1, -1, .5};

NodeOptions ml(size_t outputs, bool symbolic = false) {
  return {.domain = "ai.onnx.ml", .outputs = outputs, .symbolic = symbolic, .numbers = {2}};
}

Attributes with(Attributes base, const Attributes& more) {
  for (const auto& [name, value] : more) {
    std::erase_if(base, [&](const auto& old) { return old.first == name; });
    base.push_back({name, value});
  }
  return base;
}

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(FloatNear(3e-6), expected);
}

// ---- Regressors ---------------------------------------------------------------------------------

const Attributes kRegressor = {{"kernel_type", "LINEAR"},
                               {"kernel_params", Numbers{.5, .1, 2}},
                               {"n_supports", 4},
                               {"support_vectors", kVectors},
                               {"coefficients", Numbers{1, -.5, .25, -.75}},
                               {"rho", Numbers{.1}}};

Numbers regressed(const Attributes& more, bool symbolic = false) {
  return numbers(run_node("SVMRegressor", 1, {kRows}, with(kRegressor, more), ml(1, symbolic)));
}

TEST(OnnxSvm, RegressorsHaveFourKernels) {
  for (bool symbolic : {false, true}) {
    EXPECT_THAT(regressed({}, symbolic), near({.8625, -1.15, .1, -.18125}));
    EXPECT_THAT(regressed({{"kernel_type", "POLY"}}, symbolic),
                near({.34953123, .1625, .1, -.23964849}));
    EXPECT_THAT(regressed({{"kernel_type", "RBF"}}, symbolic),
                near({.5788952, .03738789, .09378909, -.20913818}));
    EXPECT_THAT(
        regressed({{"kernel_type", "SIGMOID"}, {"kernel_params", Numbers{.5, .1, 3}}}, symbolic),
        near({.44043732, -.4425865, .1, .00916659}));
  }
  EXPECT_THAT(regressed({{"kernel_type", "RBF"}, {"one_class", 1}}), ElementsAre(1, 1, 1, -1));
}

TEST(OnnxSvm, RegressorsWithoutVectorsAreLinear) {
  const Attributes attributes = {
      {"kernel_params", Numbers{0, 0, 0}}, {"coefficients", Numbers{.5, -1}}, {"rho", Numbers{.1}}};
  const Tensor y = run_node("SVMRegressor", 1, {kRows}, attributes, ml(1));
  EXPECT_EQ(y.type(), type_of(DType::f32, {4, 1}));
  EXPECT_THAT(numbers(y), near({-.45, 2.6, .1, -.65}));
}

TEST(OnnxSvm, RegressorsRefuse) {
  const auto error = [](const Attributes& more) {
    return import_error("SVMRegressor", 1, {kRows}, with(kRegressor, more), ml(1));
  };
  EXPECT_THAT(error({{"kernel_type", "COSINE"}}), HasSubstr("kernel_type is 'COSINE'"));
  EXPECT_THAT(error({{"kernel_params", Numbers{1}}}), HasSubstr("kernel_params has 1 numbers"));
  EXPECT_THAT(error({{"n_supports", -4}}), HasSubstr("n_supports is -4"));
  EXPECT_THAT(error({{"n_supports", 3}}), HasSubstr("4 coefficients for 3 vectors"));
  EXPECT_THAT(error({{"support_vectors", Numbers(12)}}), says("3 numbers ... 2 features"));
  EXPECT_THAT(error({{"support_vectors", Numbers{}}}), HasSubstr("0 numbers for 4 vectors"));
  EXPECT_THAT(error({{"rho", Numbers{}}}), HasSubstr("rho has 0 numbers"));
  EXPECT_THAT(error({{"post_transform", "LOGISTIC"}}), HasSubstr("post_transform 'LOGISTIC'"));
}

// ---- Classifiers --------------------------------------------------------------------------------

// One vector of the first class, two of the second, one of the third.
const Attributes kThree = {{"kernel_type", "RBF"},
                           {"kernel_params", Numbers{.5, 0, 3}},
                           {"support_vectors", kVectors},
                           {"coefficients", Numbers{.5, -1, .75, -.25, -.5, 1, .3, .9}},
                           {"vectors_per_class", Ints{1, 2, 1}},
                           {"rho", Numbers{.1, -.2, .05}},
                           {"classlabels_ints", Ints{7, 8, 9}}};
const Attributes kTwo = {{"kernel_params", Numbers{0, 0, 0}},
                         {"support_vectors", kVectors},
                         {"coefficients", Numbers{.5, 1, -.75, -.5}},
                         {"vectors_per_class", Ints{2, 2}},
                         {"rho", Numbers{.1}},
                         {"classlabels_ints", Ints{7, 8}}};

std::vector<Tensor> classified(const Attributes& base, const Attributes& more,
                               bool symbolic = false) {
  return run_outputs("SVMClassifier", 1, {kRows}, with(base, more), ml(2, symbolic));
}

TEST(OnnxSvm, PairsOfClassesVote) {
  for (bool symbolic : {false, true}) {
    const std::vector<Tensor> y = classified(kThree, {}, symbolic);
    EXPECT_THAT(numbers(y[0]), ElementsAre(7, 8, 7, 7));
    EXPECT_THAT(numbers(y[1]),
                near({.50553685, -.76222849, 1.26605201, -.02363456, -.20485553, .19401957,
                      .07264427, -.63708067, 1.24862981, .27436256, -.67122495, 1.08412826}));
  }
  EXPECT_THAT(numbers(classified(kThree, {{"post_transform", "SOFTMAX"}})[1]),
              near({.29232603, .08227806, .62539589, .32494879, .27108884, .40396234, .21127732,
                    .10390185, .68482077, .27504015, .1068397, .61812007}));
}

TEST(OnnxSvm, ProbabilitiesOfPairsAreCoupled) {
  const Attributes chances = {{"prob_a", Numbers{-1, -2, -.5}}, {"prob_b", Numbers{.1, 0, -.3}}};
  for (bool symbolic : {false, true}) {
    const std::vector<Tensor> y = classified(kThree, chances, symbolic);
    EXPECT_THAT(numbers(y[0]), ElementsAre(7, 8, 7, 7));
    EXPECT_THAT(numbers(y[1]),
                near({.2491575, .42107245, .32977021, .28134999, .39597172, .32267827, .23266481,
                      .46796289, .29937226, .24114338, .43569365, .32316309}));
  }
  EXPECT_THAT(numbers(classified(kTwo, {{"prob_a", Numbers{-1.5}}, {"prob_b", Numbers{.2}}})[1]),
              near({.44079626, .55920374, .92923516, .07076488, .48750246, .5124975, .20380382,
                    .79619628}));
}

TEST(OnnxSvm, TwoClassesHaveOneScore) {
  const std::vector<Tensor> y = classified(kTwo, {});
  EXPECT_THAT(numbers(y[0]), ElementsAre(8, 7, 7, 8));
  EXPECT_THAT(numbers(y[1]), near({.025, -.025, -1.85, 1.85, -.1, .1, .775, -.775}));
  EXPECT_THAT(numbers(classified(kTwo, {{"post_transform", "SOFTMAX"}})[1]),
              near({1.025, -.025, -.85, 1.85, .9, .1, 1.775, -.775}));
  EXPECT_THAT(
      numbers(classified(kTwo, {{"post_transform", "LOGISTIC"}})[1]),
      near({.50624967, .49375033, .1358729, .8641271, .47502083, .52497918, .68460149, .31539851}));
}

TEST(OnnxSvm, ClassifiersWithoutVectorsAreLinear) {
  const Attributes linear = {{"kernel_params", Numbers{0, 0, 0}},
                             {"coefficients", Numbers{.5, 1, -.75, -.5}},
                             {"rho", Numbers{.1}},
                             {"classlabels_ints", Ints{7, 8}}};
  std::vector<Tensor> y = classified(linear, {});
  EXPECT_THAT(numbers(y[0]), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(numbers(y[1]), near({.95, -.475, -1.4, .35, .1, .1, -.15, .725}));
  y = classified(linear, {{"coefficients", Numbers{.5, 1, .75, .5}}});
  EXPECT_THAT(numbers(y[0]), ElementsAre(8, 8, 7, 7));
  y = classified(linear, {{"coefficients", Numbers{.5, 1, .75, .5, -1, 0}},
                          {"classlabels_ints", Ints{7, 8, 9}},
                          {"post_transform", "SOFTMAX"}});
  EXPECT_THAT(numbers(y[0]), ElementsAre(7, 8, 7, 9));
  EXPECT_THAT(numbers(y[1]),
              near({.4816471, .36584571, .15250717, .16289128, .56854641, .26856232, .33333334,
                    .33333334, .33333334, .19313847, .132742, .67411947}));
}

TEST(OnnxSvm, ClassifiersRefuse) {
  const auto error = [](const Attributes& more) {
    return import_error("SVMClassifier", 1, {kRows}, with(kThree, more), ml(2));
  };
  EXPECT_THAT(error({{"vectors_per_class", Ints{2, 2}}}),
              says("vectors_per_class ... 2 ... 3 labels"));
  EXPECT_THAT(error({{"vectors_per_class", Ints{-1, 2, 1}}}), HasSubstr("has the number -1"));
  EXPECT_THAT(error({{"coefficients", Numbers{1, 2}}}), HasSubstr("coefficients has 2 numbers"));
  EXPECT_THAT(error({{"rho", Numbers{1, 2}}}), HasSubstr("rho has 2 numbers, 3 are needed"));
  EXPECT_THAT(error({{"prob_a", Numbers{1, 2, 3}}}), HasSubstr("prob_b has 0 numbers"));
  EXPECT_THAT(error({{"support_vectors", Numbers(7)}}), HasSubstr("7 numbers for 4 vectors"));
  EXPECT_THAT(error({{"classlabels_ints", Ints{1}}}), HasSubstr("it has 1 labels"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
