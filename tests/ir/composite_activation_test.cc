#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::testing {
namespace {

using In = std::span<const Value>;

void expect_curve(std::string_view op, const std::function<double(double)>& fn) {
  const Array x = Array::random({3, 50}, 11, 12);
  expect_near(run_op(op, {x.tensor()})[0], x.map(fn), 1e-12);
  // 0 and 1 sized dims, rank 0.
  EXPECT_EQ(run_op(op, {Array({0, 4}).tensor()})[0].elements(), 0);
  expect_near(run_op(op, {Array({}, 0.75).tensor()})[0], Array({}, fn(0.75)), 1e-13);
  expect_symbolic(op, {"f32[N, 3]"});
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log(1 + std::exp(x)); }

TEST(Activations, FollowTheirFormulas) {
  expect_curve("relu", [](double x) { return x > 0 ? x : 0; });
  expect_curve("gelu", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); });
  expect_curve("gelu {form = tanh}", [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
  expect_curve("silu", [](double x) { return x * sigmoid(x); });
  expect_curve("hard_sigmoid", [](double x) { return std::min(1.0, std::max(0.0, x / 6 + 0.5)); });
  expect_curve("hard_sigmoid {alpha = 0.2, beta = 0.4}",
               [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.4)); });
  expect_curve("hard_swish", [](double x) { return x * std::min(6.0, std::max(0.0, x + 3)) / 6; });
  expect_curve("softplus", softplus);
  expect_curve("mish", [](double x) { return x * std::tanh(softplus(x)); });
}

TEST(Activations, AtTheEdges) {
  expect_eval("relu", {"f32[4] nan inf -inf -0.5"}, {"f32[4] nan inf 0 0"});
  expect_eval("relu", {"i8[3] -128 0 127"}, {"i8[3] 0 0 127"});
  expect_eval("relu", {"u8[2] 0 255"}, {"u8[2] 0 255"});
  expect_eval("softplus", {"f64[4] nan inf -inf 1000"}, {"f64[4] nan inf 0 1000"});
  expect_eval("hard_sigmoid", {"f32[4] nan inf -inf 0"}, {"f32[4] nan 1 0 0.5"});
  expect_eval("mish", {"f64[2] 1000 nan"}, {"f64[2] 1000 nan"});
  expect_infer_error("gelu", {"i32[2]"}, "element type i32");
  expect_infer_error("relu", {"bool[2]"}, "element type bool");
}

TEST(Activations, PreluBroadcastsItsSlope) {
  expect_eval("prelu", {"f32[2,3] -1 2 -3 4 -5 6", "f32[3] 0.5 1 2"},
              {"f32[2,3] -0.5 2 -6 4 -5 6"});
  expect_eval("prelu", {"f32[2,2] -1 -2 3 -4", "f32[2,1] 2 3"}, {"f32[2,2] -2 -4 3 -12"});
  expect_eval("prelu", {"f32[2] -1 nan", "f32[] 0.25"}, {"f32[2] -0.25 nan"});
  expect_eval("prelu", {"i32[3] -2 0 5", "i32[1] 7"}, {"i32[3] -14 0 5"});
  expect_symbolic("prelu", {"f32[N, M]", "f32[M]"});
  expect_infer_error("prelu", {"f32[2,3]", "f32[2]"}, "slope is f32[2], which does not broadcast");
  expect_infer_error("prelu", {"f32[3]", "f32[2,3]"}, "does not broadcast to f32[3]");
  expect_infer_error("prelu", {"f32[3]", "f64[3]"}, "slope is f64[3], want the element type");
}

TEST(Activations, ComeBackFromTheirExpansions) {
  for (const char* type : {"f32[N, 8]", "f64[3]", "bf16[4, 1]", "f16[2, 2]", "f32[]"}) {
    for (const char* op :
         {"relu", "gelu", "gelu {form = tanh}", "silu", "hard_sigmoid", "hard_swish", "softplus",
          "mish", "hard_sigmoid {alpha = 0.2}", "hard_sigmoid {alpha = 0.25, beta = 0.75}",
          "hard_sigmoid {alpha = 1, beta = 0}"}) {
      expect_raises(op, {type});
    }
  }
  expect_raises("relu", {"i32[4]"});
  expect_raises("prelu", {"f32[N, 3, 5]", "f32[3, 1]"});
  expect_raises("prelu", {"f32[2, 3]", "f32[3]"});
  expect_raises("prelu", {"f32[2, 3]", "f32[2, 3]"});
  expect_raises("prelu", {"f32[2, 3]", "f32[1, 3]"});
  expect_raises("prelu", {"f32[2, 3]", "f32[]"});
  expect_raises("prelu", {"i32[2, 3]", "i32[1]"});
}

TEST(Activations, RaiseFromOtherSpellings) {
  constexpr double kRoot = 1.4142135623730951, kTanh = 0.7978845608028654;
  auto erf = [](Value x) { return unary(Opcode::erf, x); };
  auto raises = [](std::string_view op, const std::function<Value(Value)>& body) {
    for (const char* type : {"f32[2, 8]", "f64[N]"})
      expect_raised(op, {type}, [&](In in) { return body(in[0]); });
  };
  raises("relu",
         [](Value x) { return binary(Opcode::max, x.builder().full(x.dtype(), x.dims(), 0), x); });
  raises("gelu", [&](Value x) { return x * (0.5 * (1 + erf(x / kRoot))); });
  raises("gelu", [&](Value x) { return (erf(x * (1 / kRoot)) + 1) * x * 0.5; });
  raises("gelu",
         [&](Value x) { return (x / 2) * (erf(x / sqrt(x.builder().scalar(x.dtype(), 2))) + 1); });
  raises("gelu {form = tanh}",
         [&](Value x) { return 0.5 * (x * (1 + tanh(kTanh * (x + 0.044715 * power(x, 3))))); });
  raises("gelu {form = tanh}",
         [&](Value x) { return 0.5 * x * (1 + tanh(x * kTanh * (1 + 0.044715 * x * x))); });
  raises("silu", [](Value x) { return logistic(x) * x; });
  raises("silu", [](Value x) { return x / (1 + exp(-x)); });
  raises("silu", [](Value x) { return x * (1 / (exp(-x) + 1)); });
  raises("hard_swish", [](Value x) { return x * minimum(maximum(x + 3, 0), 6) / 6; });
  raises("hard_swish", [](Value x) { return x * (maximum(minimum(3 + x, 6), 0) * (1.0 / 6)); });
  raises("hard_sigmoid", [](Value x) { return minimum(maximum(x / 6 + 0.5, 0), 1); });
  raises("mish", [](Value x) { return x * tanh(log(1 + exp(x))); });
  raises("mish", [](Value x) { return x * tanh(unary(Opcode::log1p, exp(x))); });
  expect_raised("prelu", {"f32[2, 3]", "f32[3]"},
                [](In in) { return select(compare("gt", in[0], 0), in[0], in[0] * in[1]); });
  expect_raised("prelu", {"f32[2, 3]", "f32[3]"},
                [](In in) { return select(compare("ge", in[0], 0), in[0], in[1] * in[0]); });
  expect_raised("prelu", {"f32[2, 3]"},
                [](In in) { return select(compare("lt", in[0], 0), in[0] * 0.01, in[0]); });
}

TEST(Activations, NearMissesStay) {
  const auto one = {std::string_view("f32[2, 8]")};
  auto erf = [](Value x) { return unary(Opcode::erf, x); };
  expect_not_raised(Opcode::relu, one, [](In in) { return maximum(in[0], 1e-6); });
  expect_not_raised(Opcode::relu, one, [](In in) { return minimum(in[0], 0); });
  expect_not_raised(Opcode::gelu, one,
                    [&](In in) { return in[0] * 0.5 * (1 + erf(in[0] / 1.415)); });
  expect_not_raised(Opcode::gelu, one,
                    [&](In in) { return in[0] * 0.4999 * (1 + erf(in[0] / 1.4142135)); });
  expect_not_raised(Opcode::gelu, one, [&](In in) {
    return 0.5 * in[0] * (1 + tanh(0.7978845608028654 * (in[0] + 0.0447 * power(in[0], 3))));
  });
  expect_not_raised(Opcode::silu, one, [](In in) { return in[0] * logistic(1.702 * in[0]); });
  expect_not_raised(Opcode::hard_swish, one,
                    [](In in) { return in[0] * minimum(maximum(in[0] + 3, 0), 6) / 5.9; });
  expect_not_raised(Opcode::softplus, one, [](In in) { return log(1 + exp(in[0])); });
  expect_not_raised(Opcode::prelu, one,
                    [](In in) { return select(compare("lt", in[0], 1), in[0] * 0.1, in[0]); });
  expect_not_raised(Opcode::prelu, one,
                    [](In in) { return select(compare("gt", in[0], 0), in[0] * 0.1, in[0]); });
}

}  // namespace
}  // namespace hone::testing
