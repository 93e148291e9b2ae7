#include <gmock/gmock.h>

#include <cmath>

#include <functional>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
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
              says("4 operands ... 2 and 3 for each tensor"));
  EXPECT_THAT(import_error("Momentum", 1, {rate(1), count(0), x, x, x}, {}, options),
              HasSubstr("attribute 'alpha' is missing"));
}

// ---- Gradient -----------------------------------------------------------------------------------

struct Step {
  std::string op;
  std::vector<std::string> inputs;
  std::string output;
};

// The steps on x f32[2, 2] and w f32[2], then the gradient of y by both.
Result<std::vector<Tensor>> gradient(const std::vector<Step>& steps, const Numbers& x,
                                     const Numbers& w, const std::vector<std::string>& zs = {}) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.add_opset_import()->set_domain(kDomain);
  model.mutable_opset_import(1)->set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  fill_input(*graph.add_input(), "x", type_of(DType::f32, {2, 2}), false);
  fill_input(*graph.add_input(), "w", type_of(DType::f32, {2}), false);
  for (const Step& step : steps) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(step.op);
    for (const std::string& name : step.inputs) node.add_input(name);
    node.add_output(step.output);
  }
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Gradient");
  node.set_domain(kDomain);
  std::vector<std::string> xs;
  for (const char* name : {"x", "w"}) {
    node.add_input(name);
    if (!zs.empty() && zs[0] == name) continue;
    xs.push_back(name);
    node.add_output(std::string("d") + name);
    graph.add_output()->set_name(std::string("d") + name);
  }
  for (const auto& [name, value] : Attributes{{"xs", xs}, {"zs", zs}, {"y", "y"}}) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    fill_attribute(attribute, value);
  }
  std::string bytes = model.SerializeAsString();
  Model imported = HONE_TRY(parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", "."));
  Tensor inputs[] = {reals({2, 2}, x), reals({2}, w)};
  return evaluate_model(imported, inputs);
}

TEST(OnnxTraining, GradientsAgreeWithDifferences) {
  std::vector<Step> steps = {{"Mul", {"x", "w"}, "a"}, {"Exp", {"a"}, "b"},
                             {"Div", {"b", "x"}, "c"}, {"Tanh", {"w"}, "d"},
                             {"Sub", {"c", "d"}, "e"}, {"Transpose", {"e"}, "f"},
                             {"Mul", {"f", "w"}, "y"}};
  auto y = [](const Numbers& x, const Numbers& w) {
    double sum = 0;
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j)
        sum += (std::exp(x[2 * i + j] * w[j]) / x[2 * i + j] - std::tanh(w[j])) * w[i];
    return sum;
  };
  Numbers x = {0.5, -1, 2, 0.75}, w = {0.3, -0.6};
  auto differences = [&](Numbers& v) {
    Numbers result;
    for (double& element : v) {
      double before = element;
      element = before + 1e-6;
      double above = y(x, w);
      element = before - 1e-6;
      result.push_back((above - y(x, w)) / 2e-6);
      element = before;
    }
    return result;
  };
  Result<std::vector<Tensor>> d = gradient(steps, x, w);
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  EXPECT_THAT(numbers((*d)[0]), near(differences(x)));
  EXPECT_THAT(numbers((*d)[1]), near(differences(w)));
}

TEST(OnnxTraining, GradientsThatCannotBeTaken) {
  auto error = [](const std::vector<Step>& steps, const std::vector<std::string>& zs = {}) {
    Result<std::vector<Tensor>> d = gradient(steps, Numbers(4), Numbers(2), zs);
    return d.ok() ? "" : d.error().what();
  };
  EXPECT_THAT(error({{"Erf", {"x"}, "y"}}), HasSubstr("the derivative of 'erf' is not known here"));
  EXPECT_EQ(error({{"Erf", {"w"}, "a"}, {"Add", {"x", "a"}, "y"}}, {"w"}), "");
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
