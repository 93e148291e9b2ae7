#include <gmock/gmock.h>

#include <cmath>

#include "tests/io/onnx_testing.h"

namespace hone::onnx_testing {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(DoubleNear(1e-5), expected);
}

const std::string kDomain = "ai.onnx.preview.training";

Operand count(int64_t updates) { return integers({}, {updates}); }
Operand rate(double r) { return reals({}, {r}); }

TEST(OnnxTraining, MomentumHasNoBetaInItsFirstStep) {
  Attributes attributes = {
      {"alpha", 0.5}, {"beta", 0.25}, {"norm_coefficient", 0.0}, {"mode", "standard"}};
  NodeOptions options = {.domain = kDomain, .outputs = 2};
  Tensor x = reals({1}, {1}), g = reals({1}, {4}), v = reals({1}, {2});
  auto first = run_outputs("Momentum", 1, {rate(0.1), count(0), x, g, v}, attributes, options);
  EXPECT_THAT(numbers(first[1]), near({5}));
  EXPECT_THAT(numbers(first[0]), near({0.5}));
  auto second = run_outputs("Momentum", 1, {rate(0.1), count(1), x, g, v}, attributes, options);
  EXPECT_THAT(numbers(second[1]), near({2}));
  attributes.back().second = "nesterov";
  auto nesterov = run_outputs("Momentum", 1, {rate(0.1), count(1), x, g, v}, attributes, options);
  EXPECT_THAT(numbers(nesterov[0]), near({1 - 0.1 * (4 + 0.5 * 2)}));
}

TEST(OnnxTraining, AdamCorrectsItsBiasAfterTheFirstStep) {
  Attributes attributes = {{"alpha", 0.5}, {"beta", 0.75}, {"epsilon", 0.0}};
  NodeOptions options = {.domain = kDomain, .outputs = 3};
  Tensor x = reals({1}, {1}), g = reals({1}, {4}), zero = reals({1}, {0});
  auto y = run_outputs("Adam", 1, {rate(0.1), count(2), x, g, zero, zero}, attributes, options);
  // The averages are 2 and 4, the rate 0.1 * sqrt(1 - 0.5625) / (1 - 0.25).
  EXPECT_THAT(numbers(y[1]), near({2}));
  EXPECT_THAT(numbers(y[2]), near({4}));
  EXPECT_THAT(numbers(y[0]), near({1 - 0.1 * std::sqrt(0.4375) / 0.75 * 2 / 2}));
}

TEST(OnnxTraining, Refusals) {
  NodeOptions options = {.domain = kDomain, .outputs = 2};
  Tensor x = reals({1}, {1});
  EXPECT_THAT(import_error("Adagrad", 1, {rate(1), count(0), x, x}, {}, options),
              HasSubstr("there are 4 operands, must be 2 and 3 for each tensor"));
  EXPECT_THAT(import_error("Momentum", 1, {rate(1), count(0), x, x, x}, {}, options),
              HasSubstr("attribute 'alpha' is missing"));
}

}  // namespace
}  // namespace hone::onnx_testing
