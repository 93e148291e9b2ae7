#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// ---- Formulas -----------------------------------------------------------------------------------

// Softmax over the last axis of [rows, columns].
Array softmax_rows(const Array& x, bool logarithm) {
  Array y(x.dims());
  for (int64_t r = 0; r < x.dim(0); ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.dim(1); ++c) sum += std::exp(x(r, c));
    for (int64_t c = 0; c < x.dim(1); ++c)
      y(r, c) = logarithm ? x(r, c) - std::log(sum) : std::exp(x(r, c)) / sum;
  }
  return y;
}

// Standardizes groups of `size` consecutive numbers.
Array standardized(const Array& x, size_t size, double epsilon) {
  Array y = x;
  for (size_t begin = 0; begin < x.size(); begin += size) {
    double mean = 0, variance = 0;
    for (size_t i = begin; i < begin + size; ++i) mean += x[i] / static_cast<double>(size);
    for (size_t i = begin; i < begin + size; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (size_t i = begin; i < begin + size; ++i)
      y[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
  }
  return y;
}

// y[n, c, s] * scale[c] + bias[c]
Array per_channel(Array y, const Array& scale, const Array& bias) {
  for (int64_t n = 0; n < y.dim(0); ++n)
    for (int64_t c = 0; c < y.dim(1); ++c)
      for (int64_t s = 0; s < y.dim(2); ++s) y(n, c, s) = y(n, c, s) * scale(c) + bias(c);
  return y;
}

// ---- Softmax ------------------------------------------------------------------------------------

TEST(Softmax, SumsToOneAlongItsAxis) {
  const Array x = Array::random({4, 7}, 1, 5);
  expect_near(run_op("softmax", {x.tensor()})[0], softmax_rows(x, false));
  expect_near(run_op("softmax {axis = 1}", {x.tensor()})[0], softmax_rows(x, false));
  expect_near(run_op("log_softmax", {x.tensor()})[0], softmax_rows(x, true));
  expect_eval("softmax {axis = 0}", {"f64[2,2] 0 0 0 0"}, {"f64[2,2] 0.5"});
  expect_eval("softmax {axis = -2}", {"f64[2,1] 0 0"}, {"f64[2,1] 0.5"});
}

TEST(Softmax, AtTheEdges) {
  expect_eval("softmax", {"f32[3] 1000 1000 -inf"}, {"f32[3] 0.5 0.5 0"});
  expect_eval("softmax", {"f32[2,2] -inf -inf 0 nan"}, {"f32[2,2] nan"});
  expect_eval("softmax", {"f32[2] inf 0"}, {"f32[2] nan nan"});
  expect_eval("log_softmax", {"f64[2] 1e300 0"}, {"f64[2] 0 -1e300"});
  expect_eval("softmax", {"f32[1] -7"}, {"f32[1] 1"});
  EXPECT_EQ(run_op("softmax", {Array({3, 0}).tensor()})[0].elements(), 0);
  EXPECT_EQ(run_op("softmax {axis = 0}", {Array({3, 0}).tensor()})[0].elements(), 0);
  expect_symbolic("softmax", {"f32[N, M]"});
  expect_symbolic("log_softmax {axis = 0}", {"f32[N, M]"});
  expect_infer_error("softmax {axis = 2}", {"f32[2,3]"}, "softmax: axis 2 is outside rank 2");
  expect_infer_error("softmax", {"f32[]"}, "axis -1 is outside rank 0");
  expect_infer_error("softmax", {"i32[3]"}, "element type i32");
}

// ---- Normalization ------------------------------------------------------------------------------

TEST(Norms, LayerNorm) {
  const Array x = Array::random({3, 4, 5}, 2, 3), s = Array::random({5}, 3),
              b = Array::random({5}, 4);
  Array wanted = standardized(x, 5, 1e-5);
  expect_near(run_op("layer_norm", {x.tensor()})[0], wanted);
  expect_near(run_op("layer_norm {axis = 1, epsilon = 0.1}", {x.tensor()})[0],
              standardized(x, 20, 0.1));
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] * s[i % 5] + b[i % 5];
  expect_near(run_op("layer_norm", {x.tensor(), s.tensor(), b.tensor()})[0], wanted);
  wanted = standardized(x, 5, 1e-5);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += b[i % 5];
  expect_near(run_op("layer_norm", {x.tensor(), Tensor(), b.tensor()})[0], wanted);
  expect_eval("layer_norm", {"f64[2,1] 5 -3"}, {"f64[2,1] 0"});
  EXPECT_EQ(run_op("layer_norm", {Array({0, 3}).tensor()})[0].elements(), 0);
}

TEST(Norms, RmsNorm) {
  const Array x = Array::random({4, 6}, 5, 2), s = Array::random({6}, 6);
  Array wanted(x.dims());
  for (int64_t r = 0; r < 4; ++r) {
    double square = 0;
    for (int64_t c = 0; c < 6; ++c) square += x(r, c) * x(r, c) / 6;
    for (int64_t c = 0; c < 6; ++c) wanted(r, c) = x(r, c) / std::sqrt(square + 1e-6) * s(c);
  }
  expect_near(run_op("rms_norm", {x.tensor(), s.tensor()})[0], wanted);
}

TEST(Norms, PerChannel) {
  const Array x = Array::random({2, 6, 5}, 7, 2), s = Array::random({6}, 8),
              b = Array::random({6}, 9);
  expect_near(run_op("instance_norm {epsilon = 0.01}", {x.tensor(), s.tensor(), b.tensor()})[0],
              per_channel(standardized(x, 5, 0.01), s, b));
  expect_near(run_op("group_norm {groups = 3}", {x.tensor(), s.tensor(), b.tensor()})[0],
              per_channel(standardized(x, 10, 1e-5), s, b));
  const Array mean = Array::random({6}, 10),
              variance = Array::random({6}, 11).map([](double v) { return v * v; });
  Array wanted = x;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 6; ++c)
      for (int64_t i = 0; i < 5; ++i)
        wanted(n, c, i) = (x(n, c, i) - mean(c)) / std::sqrt(variance(c) + 1e-5) * s(c) + b(c);
  expect_near(run_op("batch_norm",
                     {x.tensor(), s.tensor(), b.tensor(), mean.tensor(), variance.tensor()})[0],
              wanted);
  expect_eval("batch_norm {axis = -1, epsilon = 1}",
              {"f64[1,2] 3 4", "f64[2] 1 2", "f64[2] 0 1", "f64[2] 1 2", "f64[2] 0 3"},
              {"f64[1,2] 2 3"});
}

TEST(Norms, Lrn) {
  for (int64_t size : {1, 2, 3, 5, 9}) {
    const Array x = Array::random({2, 6, 3}, 12, 2);
    Array wanted(x.dims());
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < 6; ++c)
        for (int64_t i = 0; i < 3; ++i) {
          double sum = 0;
          const int64_t low = std::max<int64_t>(0, c - (size - 1) / 2);
          const int64_t high = std::min<int64_t>(5, c + size / 2);
          for (int64_t k = low; k <= high; ++k) sum += x(n, k, i) * x(n, k, i);
          wanted(n, c, i) = x(n, c, i) / std::pow(2 + 0.3 / static_cast<double>(size) * sum, 0.6);
        }
    expect_near(run_op(fmt::format("lrn {{size = {}, alpha = 0.3, beta = 0.6, bias = 2}}", size),
                       {x.tensor()})[0],
                wanted);
  }
}

TEST(Norms, SymbolicDims) {
  expect_symbolic("layer_norm", {"f32[N, M, 8]", "f32[8]", "f32[8]"});
  expect_symbolic("layer_norm {axis = 1}", {"f32[N, M, 8]", "f32[M, 8]"});
  expect_symbolic("rms_norm", {"f32[N, M, 8]", "f32[8]"});
  expect_symbolic("batch_norm", {"f32[N, 3, M, M]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"});
  expect_symbolic("instance_norm", {"f32[N, 3, M, M]", "f32[3]", "f32[3]"});
  expect_symbolic("group_norm {groups = 2}", {"f32[N, 4, M, M]", "f32[4]", "f32[4]"});
  expect_symbolic("group_norm {groups = 4}", {"f32[2, K, 3]", "f32[K]", "f32[K]"});
  expect_symbolic("lrn {size = 3}", {"f32[N, M, 4]"});
}

TEST(Norms, Errors) {
  expect_infer_error("layer_norm", {"f32[2,3]", "f32[2]"}, "scale is f32[2], want f32[3]");
  expect_infer_error("layer_norm", {"f32[2,3]", "", "f64[3]"}, "bias is f64[3], want f32[3]");
  expect_infer_error("layer_norm {axis = -3}", {"f32[2,3]"}, "axis -3 is outside rank 2");
  expect_infer_error("rms_norm", {"f32[2,3]", "f32[3,1]"}, "scale is f32[3, 1], want f32[3]");
  expect_infer_error("group_norm {groups = 4}", {"f32[2,6,3]", "f32[6]", "f32[6]"},
                     "6 channels ... 4 groups");
  expect_infer_error("group_norm {groups = 0}", {"f32[2,6,3]", "f32[6]", "f32[6]"},
                     "groups is 0, want 1 or more");
  expect_infer_error("group_norm {groups = 2}", {"f32[2,6,3]", "f32[3]", "f32[6]"},
                     "scale is f32[3], want f32[6]");
  expect_infer_error("instance_norm", {"f32[2,6]", "f32[6]", "f32[6]"},
                     "x ... f32[2, 6] ... rank 2 ... rank 3");
  expect_infer_error("batch_norm", {"f32[2,3]", "f32[3]", "f32[3]", "f32[2]", "f32[3]"},
                     "mean is f32[2], want f32[3]");
  expect_infer_error("lrn {size = -1}", {"f32[2,3]"}, "size is -1, want 1 or more");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
