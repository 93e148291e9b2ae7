#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

// One input, one hidden number: cells are formulas of numbers. The composites have tests of their
// own; here is what the operands and attributes of the standard become.

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void expect_near(const Tensor& got, const Numbers& wanted) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got.real_at(static_cast<int64_t>(i)), wanted[i], 1e-6) << "at " << i;
}

const Tensor kX = reals({3, 1, 1}, {1, -2, 0.5});
const Tensor kW = reals({1, 1, 1}, {0.75}), kR = reals({1, 1, 1}, {-0.5});

Numbers rnn(const Numbers& x, const std::function<double(double)>& f, double bias = 0,
            double h = 0) {
  Numbers y;
  for (double v : x) y.push_back(h = f(0.75 * v - 0.5 * h + bias));
  return y;
}

TEST(OnnxRnn, OperandsAndResults) {
  auto f = [](double v) { return std::tanh(v); };
  const Numbers wanted = rnn({1, -2, 0.5}, f, 0.125, 0.25);
  const std::vector<Operand> operands = {
      kX, kW, kR, reals({1, 2}, {0.0625, 0.0625}), none(), reals({1, 1, 1}, {0.25})};
  for (int version : {1, 7, 14, 22}) {
    Attributes attributes = {{"hidden_size", 1}};
    if (version < 7) attributes.emplace_back("output_sequence", 1);
    const std::vector<Tensor> y = run_outputs("RNN", version, operands, attributes, {.outputs = 2});
    EXPECT_EQ(y[0].type(), type_of(DType::f32, {3, 1, 1, 1}));
    expect_near(y[0], wanted);
    expect_near(y[1], {wanted[2]});
  }
}

TEST(OnnxRnn, BatchFirstInBothDirections) {
  const Tensor x = reals({1, 3, 1}, {1, -2, 0.5});
  const Tensor w = reals({2, 1, 1}, {0.75, 0.75}), r = reals({2, 1, 1}, {-0.5, -0.5});
  auto f = [](double v) { return std::tanh(v); };
  const Numbers there = rnn({1, -2, 0.5}, f), back = rnn({0.5, -2, 1}, f, 0, 1);
  for (bool symbolic : {false, true}) {
    const std::vector<Tensor> y = run_outputs(
        "RNN", 14,
        {x, constant(w), constant(r), none(), none(), constant(reals({1, 2, 1}, {0, 1}))},
        {{"layout", 1}, {"direction", "bidirectional"}}, {.outputs = 2, .symbolic = symbolic});
    EXPECT_EQ(y[0].type(), type_of(DType::f32, {1, 3, 2, 1}));
    expect_near(y[0], {there[0], back[2], there[1], back[1], there[2], back[0]});
    EXPECT_EQ(y[1].type(), type_of(DType::f32, {1, 2, 1}));
    expect_near(y[1], {there[2], back[2]});
  }
}

TEST(OnnxRnn, EveryActivation) {
  struct Case {
    const char* name;
    Numbers alpha, beta;
    std::function<double(double)> f;
  };
  const Case cases[] = {
      {"Relu", {}, {}, [](double x) { return std::max(x, 0.0); }},
      {"Sigmoid", {}, {}, sigmoid},
      {"Softsign", {}, {}, [](double x) { return x / (1 + std::abs(x)); }},
      {"softplus", {}, {}, [](double x) { return std::log(1 + std::exp(x)); }},
      {"Elu", {}, {}, [](double x) { return x < 0 ? std::exp(x) - 1 : x; }},
      {"Elu", {2}, {}, [](double x) { return x < 0 ? 2 * (std::exp(x) - 1) : x; }},
      {"LeakyRelu", {}, {}, [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"LeakyRelu", {0.5}, {}, [](double x) { return x < 0 ? 0.5 * x : x; }},
      {"ThresholdedRelu", {0.25}, {}, [](double x) { return x >= 0.25 ? x : 0; }},
      {"Affine", {0.5}, {0.25}, [](double x) { return 0.5 * x + 0.25; }},
      {"ScaledTanh", {2}, {0.5}, [](double x) { return 2 * std::tanh(0.5 * x); }},
      {"HardSigmoid", {}, {}, [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); }},
      {"HardSigmoid",
       {0.5},
       {0.25},
       [](double x) { return std::min(1.0, std::max(0.0, 0.5 * x + 0.25)); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Attributes attributes = {{"activations", std::vector<std::string>{c.name}}};
    if (!c.alpha.empty()) attributes.emplace_back("activation_alpha", c.alpha);
    if (!c.beta.empty()) attributes.emplace_back("activation_beta", c.beta);
    expect_near(run_node("RNN", 7, {kX, kW, kR}, attributes), rnn({1, -2, 0.5}, c.f));
  }
}

TEST(OnnxGru, ResetBeforeAndAfter) {
  const Tensor w = reals({1, 3, 1}, {0.5, -1, 0.75}), r = reals({1, 3, 1}, {0.25, 2, -0.5});
  const Tensor b = reals({1, 6}, {0.1, 0.2, 0.3, -0.4, 0.5, 0.6});
  for (bool linear : {false, true}) {
    Numbers wanted;
    double h = 0;
    for (double x : {1.0, -2.0, 0.5}) {
      const double z = sigmoid(0.5 * x + 0.25 * h + 0.1 - 0.4);
      const double reset = sigmoid(-x + 2 * h + 0.2 + 0.5);
      const double inner = linear ? reset * (-0.5 * h + 0.6) : -0.5 * (reset * h) + 0.6;
      h = (1 - z) * std::tanh(0.75 * x + inner + 0.3) + z * h;
      wanted.push_back(h);
    }
    expect_near(
        run_node("GRU", 7, {kX, w, r, b}, {{"linear_before_reset", static_cast<int>(linear)}}),
        wanted);
    if (!linear) expect_near(run_node("GRU", 1, {kX, w, r, b}), wanted);
  }
  EXPECT_NE(import_error("GRU", 1, {kX, w, r, b}, {{"linear_before_reset", 1}}), "");
}

TEST(OnnxLstm, EveryOperandAndAttribute) {
  const Tensor w = reals({1, 4, 1}, {0.5, -1, 0.75, 1.5}), r = reals({1, 4, 1}, {0.25, 1, -0.5, 2});
  const Tensor b = reals({1, 8}, {0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0}), p = reals({1, 3}, {1, -1, 2});
  const Tensor x = reals({3, 2, 1}, {1, 1, -2, -2, 0.5, 0.5});
  for (bool coupled : {false, true}) {
    Numbers hs, cs;
    double h = 0.5, c = -0.25;
    auto clip = [](double v) { return std::min(1.0, std::max(-1.0, v)); };
    for (double v : {1.0, -2.0, 0.5}) {
      const double i = sigmoid(clip(0.5 * v + 0.25 * h + 0.1 + c));
      const double f = coupled ? 1 - i : sigmoid(clip(0.75 * v - 0.5 * h + 0.3 + 2 * c));
      const double next = f * c + i * std::tanh(clip(1.5 * v + 2 * h + 0.4));
      const double o = sigmoid(clip(-v + h + 0.2 - next));
      c = next, h = o * std::tanh(c);
      hs.push_back(h), cs.push_back(c);
    }
    // The second sequence ends after two steps.
    const std::vector<Tensor> y = run_outputs(
        "LSTM", 14,
        {x, w, r, b, integers({2}, {3, 2}, DType::i32), reals({1, 2, 1}, {0.5, 0.5}),
         reals({1, 2, 1}, {-0.25, -0.25}), p},
        {{"clip", 1.0}, {"input_forget", static_cast<int>(coupled)}, {"hidden_size", 1}},
        {.outputs = 3});
    expect_near(y[0], {hs[0], hs[0], hs[1], hs[1], hs[2], 0});
    expect_near(y[1], {hs[2], hs[1]});
    expect_near(y[2], {cs[2], cs[1]});
  }
}

TEST(OnnxRecurrent, ParametersGoToThoseThatTakeThem) {
  const Tensor w = reals({2, 1, 1}, {0.75, 0.75}), r = reals({2, 1, 1}, {-0.5, -0.5});
  const std::vector<std::string> names = {"Tanh", "LeakyRelu"};
  const Tensor y = run_node(
      "RNN", 7, {kX, w, r},
      {{"direction", "bidirectional"}, {"activations", names}, {"activation_alpha", Numbers{0.5}}});
  const Numbers there = rnn({1, -2, 0.5}, [](double x) { return std::tanh(x); });
  const Numbers back = rnn({0.5, -2, 1}, [](double x) { return x < 0 ? 0.5 * x : x; });
  expect_near(y, {there[0], back[2], there[1], back[1], there[2], back[0]});
}

TEST(OnnxRecurrent, Errors) {
  const std::vector<Operand> operands = {kX, kW, kR};
  auto error = [&](const Attributes& attributes) {
    return import_error("RNN", 14, operands, attributes);
  };
  EXPECT_THAT(error({{"hidden_size", 2}}), HasSubstr("hidden_size is 2, R has 1"));
  EXPECT_THAT(error({{"direction", "both"}}), HasSubstr("direction is 'both'"));
  EXPECT_THAT(error({{"direction", "bidirectional"}}),
              HasSubstr("W is f32[1, 1, 1], want 2 directions and 1 gates of 1"));
  EXPECT_THAT(error({{"clip", -1.0}}), HasSubstr("clip is -1"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Sine"}}}),
              says("activation 'Sine'"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Tanh", "Tanh"}}}),
              HasSubstr("2 activations for 1 direction, want 1"));
  EXPECT_THAT(import_error("RNN", 14, {kX, kW, reals({1, 1}, {1})}), HasSubstr("R"));
  EXPECT_THAT(import_error("RNN", 7, operands, {{"layout", 1}}), HasSubstr("layout"));
  EXPECT_NE(import_error("LSTM", 14, operands), "");
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
