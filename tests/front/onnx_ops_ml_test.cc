#include <gmock/gmock.h>

#include <cmath>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// ai.onnx.ml: linear models, tables and ensembles of trees. Expected values that no formula gives
// come from ONNX Runtime 1.30.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Words = std::vector<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Tensor kRows = reals({4, 2}, {1, 2, -1, .5, 3, -4, kNan, 0});

NodeOptions ml(size_t outputs = 1, bool symbolic = false) {
  return {.domain = "ai.onnx.ml", .outputs = outputs, .symbolic = symbolic, .numbers = {2}};
}

void expect_near(const Tensor& actual, const Numbers& expected) {
  ASSERT_EQ(actual.elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual.real_at(static_cast<int64_t>(i)), expected[i], 2e-6) << "at " << i;
}

// ---- Linear models and features -----------------------------------------------------------------

TEST(OnnxMl, LinearRegressorHasTargets) {
  const Tensor x = reals({2, 2}, {1, 2, -1, .5});
  const Attributes attributes = {
      {"coefficients", Numbers{.3, -.2, .1, .1}}, {"intercepts", Numbers{.1, .2}}, {"targets", 2}};
  for (bool symbolic : {false, true})
    expect_near(run_node("LinearRegressor", 1, {x}, attributes, ml(1, symbolic)),
                {0, .5, -.3, .15});
  Attributes logistic = attributes;
  logistic.push_back({"post_transform", "LOGISTIC"});
  expect_near(run_node("LinearRegressor", 1, {x}, logistic, ml()), {.5, .622459, .425557, .53743});
  EXPECT_THAT(import_error("LinearRegressor", 1, {reals({1, 3}, {1, 2, 3})}, attributes, ml()),
              says("2 coefficients ... 3 features"));
}

TEST(OnnxMl, LinearClassifierOfOneRowScoresTheSecondLabel) {
  const Tensor x = reals({3, 2}, {1, 3, -1, .5, 3, -4});
  Attributes attributes = {{"classlabels_ints", Ints{5, 9}},
                           {"coefficients", Numbers{.3, -.2}},
                           {"intercepts", Numbers{.1}}};
  std::vector<Tensor> y = run_outputs("LinearClassifier", 1, {x}, attributes, ml(2));
  EXPECT_THAT(numbers(y[0]), ElementsAre(5, 5, 9));
  expect_near(y[1], {1.2, -.2, 1.3, -.3, -.8, 1.8});
  attributes.push_back({"post_transform", "LOGISTIC"});
  expect_near(run_outputs("LinearClassifier", 1, {x}, attributes, ml(2))[1],
              {.549834, .450166, .574443, .425557, .141851, .858149});
  // Labels that are strings are their places: here in the order of the labels.
  attributes = {{"classlabels_strings", Words{"b", "a"}},
                {"coefficients", Numbers{.3, -.2}},
                {"intercepts", Numbers{.1}}};
  EXPECT_THAT(numbers(run_outputs("LinearClassifier", 1, {x}, attributes, ml(2))[0]),
              ElementsAre(0, 0, 1));
  attributes.push_back({"classlabels_ints", Ints{5, 9}});
  EXPECT_THAT(import_error("LinearClassifier", 1, {x}, attributes, ml(2)),
              HasSubstr("labels are given twice"));
}

TEST(OnnxMl, LinearClassifierTakesTheLargestScore) {
  const Tensor x = reals({2, 2}, {-1, .5, 3, -4});
  Attributes attributes = {{"classlabels_ints", Ints{5, 9}},
                           {"coefficients", Numbers{.3, -.2, -.3, .2}},
                           {"intercepts", Numbers{.1, -.1}},
                           {"multi_class", 1},
                           {"post_transform", "SOFTMAX"}};
  std::vector<Tensor> y = run_outputs("LinearClassifier", 1, {x}, attributes, ml(2));
  EXPECT_THAT(numbers(y[0]), ElementsAre(9, 5));
  expect_near(y[1], {.354344, .645656, .973403, .026597});
}

TEST(OnnxMl, PostTransforms) {
  const Tensor x = reals({1, 3}, {0, .6, .9});
  const auto of = [&](const char* transform) {
    return run_node("LinearRegressor", 1, {x},
                    {{"coefficients", Numbers{1, 0, 0, 0, 1, 0, 0, 0, 1}},
                     {"targets", 3},
                     {"post_transform", transform}},
                    ml());
  };
  const double a = std::exp(-.3), sum = 1 + a;
  expect_near(of("SOFTMAX_ZERO"), {0, a / sum, 1 / sum});
  const Tensor probit = of("PROBIT");
  EXPECT_EQ(probit.real_at(0), -INFINITY);
  EXPECT_NEAR(probit.real_at(1), .253354, 1e-5);
  EXPECT_NEAR(probit.real_at(2), 1.281713, 1e-5);
}

TEST(OnnxMl, NormalizerDividesRows) {
  const Tensor x = reals({3, 2}, {1, 2, -1, .5, 0, 0});
  const auto of = [&](const char* norm) {
    return run_node("Normalizer", 1, {x}, {{"norm", norm}}, ml());
  };
  expect_near(of("MAX"), {.5, 1, -2, 1, 0, 0});
  expect_near(of("L1"), {1. / 3, 2. / 3, -2. / 3, 1. / 3, 0, 0});
  expect_near(of("L2"), {.447214, .894427, -.894427, .447214, 0, 0});
  expect_near(run_node("Normalizer", 1, {integers({4}, {1, -2, 3, 0})}, {{"norm", "L1"}}, ml()),
              {1. / 6, -2. / 6, .5, 0});
}

TEST(OnnxMl, ScalerTakesOneNumberOrOnePerFeature) {
  const Tensor x = reals({2, 2}, {1, 2, 3, -4});
  expect_near(
      run_node("Scaler", 1, {x}, {{"offset", Numbers{1, 2}}, {"scale", Numbers{.5, 3}}}, ml()),
      {0, 0, 1, -18});
  expect_near(run_node("Scaler", 1, {x}, {{"offset", Numbers{1}}, {"scale", Numbers{.5}}}, ml()),
              {0, .5, 1, -2.5});
  EXPECT_THAT(import_error("Scaler", 1, {x}, {{"offset", Numbers{1, 2, 3}}}, ml()),
              HasSubstr("offset has 3 numbers for 2 features"));
}

TEST(OnnxMl, BinarizerKeepsTheType) {
  EXPECT_THAT(numbers(run_node("Binarizer", 1, {reals({4}, {1, 1.5, -2, kNan})},
                               {{"threshold", 1.0}}, ml())),
              ElementsAre(0, 1, 0, 0));
  const Tensor y =
      run_node("Binarizer", 1, {integers({2}, {0, 1}, DType::i32)}, {{"threshold", 0.5}}, ml());
  EXPECT_EQ(y.dtype(), DType::i32);
  EXPECT_THAT(numbers(y), ElementsAre(0, 1));
}

// ---- Tables -------------------------------------------------------------------------------------

TEST(OnnxMl, ArrayFeatureExtractorPicksColumns) {
  const Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = run_node("ArrayFeatureExtractor", 1, {x, integers({1, 2}, {2, 0})}, {}, ml());
  EXPECT_EQ(y.type().to_string(), "f32[2, 2]");
  EXPECT_THAT(numbers(y), ElementsAre(3, 1, 6, 4));
  const Tensor row = run_node("ArrayFeatureExtractor", 1,
                              {reals({3}, {1, 2, 3}), integers({2}, {1, 1})}, {}, ml());
  EXPECT_EQ(row.type().to_string(), "f32[1, 2]");
}

TEST(OnnxMl, LabelEncoderFindsKeys) {
  const Attributes attributes = {{"keys_int64s", Ints{7, -3, 100, 5}},
                                 {"values_floats", Numbers{.5, 1.5, 2.5, 3.5}},
                                 {"default_float", -7.0}};
  EXPECT_THAT(numbers(run_node("LabelEncoder", 2, {integers({6}, {-3, 5, 7, 100, 6, -4})},
                               attributes, ml(1, true))),
              ElementsAre(1.5, 3.5, .5, 2.5, -7, -7));
  EXPECT_THAT(import_error("LabelEncoder", 2, {integers({1}, {3})},
                           {{"keys_int64s", Ints{3, 3}}, {"values_int64s", Ints{1, 2}}}, ml()),
              HasSubstr("key 3 stands for 1 and 2"));
  EXPECT_THAT(import_error("LabelEncoder", 2, {reals({1}, {3})},
                           {{"keys_int64s", Ints{3}}, {"values_int64s", Ints{1}}}, ml()),
              HasSubstr("the keys are i64"));
  // Strings are their places: "b", "a", and what stands for all other keys.
  EXPECT_THAT(
      numbers(run_node("LabelEncoder", 2, {integers({3}, {3, 5, 9})},
                       {{"keys_int64s", Ints{5, 3}}, {"values_strings", Words{"b", "a"}}}, ml())),
      ElementsAre(1, 0, 2));
}

TEST(OnnxMl, LabelEncoderKnowsNanFromVersion4) {
  const Attributes attributes = {{"keys_floats", Numbers{kNan, 1, 0}},
                                 {"values_int64s", Ints{4, 5, 6}}};
  const Tensor x = reals({4}, {kNan, 1, 2, -0.0});
  EXPECT_THAT(numbers(run_node("LabelEncoder", 2, {x}, attributes, ml())),
              ElementsAre(-1, 5, -1, 6));
  EXPECT_THAT(numbers(run_node("LabelEncoder", 4, {x}, attributes, ml())),
              ElementsAre(4, 5, -1, 6));
  EXPECT_THAT(numbers(run_node("LabelEncoder", 4, {integers({2}, {2, 3}, DType::i16)},
                               {{"keys_tensor", integers({1}, {3}, DType::i16)},
                                {"values_tensor", reals({1}, {8}, DType::f64)},
                                {"default_tensor", reals({1}, {-2}, DType::f64)}},
                               ml())),
              ElementsAre(-2, 8));
}

// ---- Trees --------------------------------------------------------------------------------------

// Tree 0 asks x[0] <= 0.5, tree 1 asks x[1] < 1; node 1 is for yes, node 2 for no.
const Attributes kTwoTrees = {
    {"nodes_treeids", Ints{0, 0, 0, 1, 1, 1}},
    {"nodes_nodeids", Ints{0, 1, 2, 0, 1, 2}},
    {"nodes_featureids", Ints{0, 0, 0, 1, 0, 0}},
    {"nodes_values", Numbers{.5, 0, 0, 1, 0, 0}},
    {"nodes_modes", Words{"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"}},
    {"nodes_truenodeids", Ints{1, 0, 0, 1, 0, 0}},
    {"nodes_falsenodeids", Ints{2, 0, 0, 2, 0, 0}}};

Attributes with(Attributes base, const Attributes& more) {
  for (const auto& [name, value] : more) {
    std::erase_if(base, [&](const auto& old) { return old.first == name; });
    base.push_back({name, value});
  }
  return base;
}

Attributes votes(const std::string& who, const Ints& targets, const Numbers& weights) {
  Attributes leaves = {{who + "_treeids", Ints{0, 0, 1, 1}}, {who + "_nodeids", Ints{1, 2, 1, 2}}};
  return with(with(kTwoTrees, leaves), {{who + "_ids", targets}, {who + "_weights", weights}});
}

Numbers regressed(const Attributes& more, const Ints& targets = {0, 0, 0, 0},
                  const Numbers& weights = {.1, .2, .3, .4}) {
  return numbers(run_node("TreeEnsembleRegressor", 3, {kRows},
                          with(votes("target", targets, weights), more), ml(1, true)));
}

TEST(OnnxMlTrees, LeavesAreSummed) {
  EXPECT_THAT(regressed({}), Pointwise(FloatNear(1e-6), Numbers{.6, .4, .5, .5}));
  EXPECT_THAT(regressed({{"base_values", Numbers{10}}, {"aggregate_function", "AVERAGE"}}),
              Pointwise(FloatNear(1e-5), Numbers{10.3, 10.2, 10.25, 10.25}));
  EXPECT_THAT(regressed({{"aggregate_function", "MIN"}}),
              Pointwise(FloatNear(1e-6), Numbers{.2, .1, .2, .2}));
  EXPECT_THAT(regressed({{"aggregate_function", "MAX"}}),
              Pointwise(FloatNear(1e-6), Numbers{.4, .3, .3, .3}));
}

TEST(OnnxMlTrees, MissingValuesGoWhereTheNodeSays) {
  EXPECT_THAT(regressed({{"nodes_missing_value_tracks_true", Ints{1, 0, 0, 0, 0, 0}}}),
              Pointwise(FloatNear(1e-6), Numbers{.6, .4, .5, .4}));
}

TEST(OnnxMlTrees, TreesOfOneTargetEachAndLeavesOfAny) {
  // Each tree has its target; then leaves of one tree vote for different ones.
  EXPECT_THAT(regressed({{"n_targets", 2}}, {0, 0, 1, 1}),
              Pointwise(FloatNear(1e-6), Numbers{.2, .4, .1, .3, .2, .3, .2, .3}));
  EXPECT_THAT(
      regressed({{"n_targets", 3}, {"aggregate_function", "MIN"}}, {0, 1, 2, 1}, {.1, .2, .3, -.4}),
      Pointwise(FloatNear(1e-6), Numbers{0, -.4, 0, .1, 0, .3, 0, .2, .3, 0, .2, .3}));
}

TEST(OnnxMlTrees, ClassifierOfOneScore) {
  const auto classify = [&](const Numbers& weights, const Attributes& more) {
    Attributes attributes =
        with(votes("class", {0, 0, 0, 0}, weights), {{"classlabels_int64s", Ints{5, 9}}});
    return run_outputs("TreeEnsembleClassifier", 3, {kRows}, with(attributes, more), ml(2));
  };
  std::vector<Tensor> shares = classify({.1, .2, .3, .4}, {});
  EXPECT_THAT(numbers(shares[0]), ElementsAre(9, 5, 5, 5));
  expect_near(shares[1], {.4, .6, .6, .4, .5, .5, .5, .5});
  std::vector<Tensor> odds = classify({.1, -.2, .3, -.4}, {{"post_transform", "LOGISTIC"}});
  EXPECT_THAT(numbers(odds[0]), ElementsAre(5, 9, 9, 9));
  expect_near(odds[1], {.645656, .354344, .401312, .598688, .475021, .524979, .475021, .524979});
}

TEST(OnnxMlTrees, ClassifierOfManyScores) {
  std::vector<Tensor> y = run_outputs(
      "TreeEnsembleClassifier", 1, {kRows},
      with(votes("class", {0, 1, 2, 1}, {.1, .2, .3, .4}), {{"classlabels_int64s", Ints{5, 9, 7}}}),
      ml(2));
  EXPECT_THAT(numbers(y[0]), ElementsAre(9, 7, 7, 7));
  expect_near(y[1], {0, .6, 0, .1, 0, .3, 0, .2, .3, 0, .2, .3});
}

// Tests of membership are searched, and NaN is in no set.
TEST(OnnxMlTrees, EnsembleOfListsKnowsSets) {
  const Attributes attributes = {{"n_targets", 1},
                                 {"tree_roots", Ints{0}},
                                 {"nodes_featureids", Ints{0, 0}},
                                 {"nodes_splits", reals({2}, {0, 4})},
                                 {"nodes_modes", integers({2}, {6, 0}, DType::u8)},
                                 {"nodes_truenodeids", Ints{0, 1}},
                                 {"nodes_falsenodeids", Ints{1, 2}},
                                 {"nodes_trueleafs", Ints{1, 1}},
                                 {"nodes_falseleafs", Ints{0, 1}},
                                 {"membership_values", reals({6}, {7, 1.5, -2, 9, 3, kNan})},
                                 {"leaf_targetids", Ints{0, 0, 0}},
                                 {"leaf_weights", reals({3}, {10, 20, 30})}};
  const Tensor x = reals({7, 1}, {1.5, 9, -2, 2, 8, 3, kNan});
  EXPECT_THAT(numbers(run_node("TreeEnsemble", 5, {x}, attributes, ml())),
              ElementsAre(10, 10, 10, 20, 30, 10, 30));
  EXPECT_THAT(import_error("TreeEnsemble", 5, {x},
                           with(attributes, {{"nodes_falsenodeids", Ints{0, 2}}}), ml()),
              says("branch at place 0"));
  EXPECT_THAT(import_error("TreeEnsemble", 5, {x},
                           with(attributes, {{"leaf_targetids", Ints{0, 1, 0}}}), ml()),
              HasSubstr("votes for target 1 of 1"));
}

// Deeper than what is unrolled.
TEST(OnnxMlTrees, DeepTreesAreWalkedInALoop) {
  constexpr int64_t kDepth = 100;
  Ints trees, ids, features, yes, no, targets;
  Numbers splits, weights;
  Words modes;
  for (int64_t i = 0; i <= 2 * kDepth; ++i) {
    const bool is_leaf = i > kDepth - 1;
    trees.push_back(0), ids.push_back(i), features.push_back(0);
    splits.push_back(static_cast<double>(i));
    modes.push_back(is_leaf ? "LEAF" : "BRANCH_LEQ");
    yes.push_back(is_leaf ? 0 : kDepth + i);
    no.push_back(is_leaf ? 0 : (i + 1 < kDepth ? i + 1 : 2 * kDepth));
  }
  Ints leaves, zeros;
  for (int64_t i = kDepth; i <= 2 * kDepth; ++i) {
    leaves.push_back(i), zeros.push_back(0);
    weights.push_back(static_cast<double>(i - kDepth));
  }
  const Tensor x = reals({4, 1}, {-5, 41.5, 98.5, 1000});
  EXPECT_THAT(numbers(run_node("TreeEnsembleRegressor", 1, {x},
                               {{"nodes_treeids", trees},
                                {"nodes_nodeids", ids},
                                {"nodes_featureids", features},
                                {"nodes_values", splits},
                                {"nodes_modes", modes},
                                {"nodes_truenodeids", yes},
                                {"nodes_falsenodeids", no},
                                {"target_treeids", zeros},
                                {"target_nodeids", leaves},
                                {"target_ids", zeros},
                                {"target_weights", weights}},
                               ml())),
              ElementsAre(0, 42, 99, 100));
}

TEST(OnnxMlTrees, RefusesWhatIsNoForest) {
  const auto error = [&](const Attributes& more) {
    return import_error("TreeEnsembleRegressor", 3, {kRows},
                        with(votes("target", {0, 0, 0, 0}, {1, 2, 3, 4}), more), ml());
  };
  EXPECT_THAT(error({{"nodes_truenodeids", Ints{7, 0, 0, 1, 0, 0}}}), HasSubstr("has no node 7"));
  EXPECT_THAT(error({{"nodes_truenodeids", Ints{0, 0, 0, 1, 0, 0}}}),
              HasSubstr("no root leads to"));
  EXPECT_THAT(error({{"nodes_falsenodeids", Ints{1, 0, 0, 2, 0, 0}}}), HasSubstr("root"));
  EXPECT_THAT(error({{"nodes_nodeids", Ints{0, 1, 1, 0, 1, 2}}}), HasSubstr("node 1 twice"));
  EXPECT_THAT(error({{"nodes_featureids", Ints{2, 0, 0, 1, 0, 0}}}), HasSubstr("feature 2 of 2"));
  EXPECT_THAT(error({{"nodes_modes", Words{"BRANCH", "LEAF"}}}), HasSubstr("has 2 entries"));
  EXPECT_THAT(error({{"target_nodeids", Ints{0, 2, 1, 2}}}), HasSubstr("votes"));
  EXPECT_THAT(error({{"target_ids", Ints{0, 0, 0, 1}}}), HasSubstr("target 1 of 1"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
