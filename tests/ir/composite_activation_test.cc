#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

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
  expect_infer_error("prelu", {"f32[2,3]", "f32[2]"}, "slope ... f32[2] ... broadcast");
  expect_infer_error("prelu", {"f32[3]", "f32[2,3]"}, "does not broadcast to f32[3]");
  expect_infer_error("prelu", {"f32[3]", "f64[3]"}, "slope ... f64[3] ... element type");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
