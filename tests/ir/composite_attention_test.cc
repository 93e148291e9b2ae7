#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// ---- Formulas -----------------------------------------------------------------------------------

struct Options {
  double scale = 0;
  bool causal = false;
  double softcap = 0;
  // The number that is added to the score of (batch, head, query, key); -inf hides it.
  std::function<double(int64_t, int64_t, int64_t, int64_t)> mask = {};
};

Array attention(const Array& q, const Array& k, const Array& v, const Options& o) {
  const int64_t heads = q.dim(1), queries = q.dim(2), keys = k.dim(2), group = heads / k.dim(1);
  const double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  Array y({q.dim(0), heads, queries, v.dim(3)});
  for (int64_t b = 0; b < q.dim(0); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        std::vector<double> weight;
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (int64_t d = 0; d < q.dim(3); ++d) score += q(b, h, i, d) * k(b, h / group, j, d);
          score *= scale;
          if (o.softcap != 0) score = o.softcap * std::tanh(score / o.softcap);
          if (o.mask) score += o.mask(b, h, i, j);
          if (o.causal && j > i + keys - queries) score = -INFINITY;
          weight.push_back(std::exp(score));
          sum += weight.back();
        }
        for (int64_t d = 0; d < v.dim(3); ++d)
          for (int64_t j = 0; j < keys; ++j)
            y(b, h, i, d) += weight[static_cast<size_t>(j)] / sum * v(b, h / group, j, d);
      }
    }
  }
  return y;
}

struct Inputs {
  Array q, k, v;
  std::vector<Tensor> tensors() const { return {q.tensor(), k.tensor(), v.tensor()}; }
};

Inputs inputs(int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys) {
  return {Array::random({2, heads, queries, 4}, 1, 2), Array::random({2, kv_heads, keys, 4}, 2, 2),
          Array::random({2, kv_heads, keys, 3}, 3, 2)};
}

// ---- Values -------------------------------------------------------------------------------------

TEST(Attention, Plain) {
  const Inputs in = inputs(2, 2, 3, 5);
  expect_near(run_op("attention", in.tensors())[0], attention(in.q, in.k, in.v, {}));
  expect_near(run_op("attention {scale = 0.3, softcap = 2}", in.tensors())[0],
              attention(in.q, in.k, in.v, {.scale = 0.3, .softcap = 2}));
}

TEST(Attention, GroupedHeads) {
  for (int64_t kv_heads : {1, 2, 3, 6}) {
    const Inputs in = inputs(6, kv_heads, 3, 5);
    expect_near(run_op("attention", in.tensors())[0], attention(in.q, in.k, in.v, {}));
    expect_near(run_op("attention {causal = true}", in.tensors())[0],
                attention(in.q, in.k, in.v, {.causal = true}));
  }
}

TEST(Attention, CausalAlignsTheEnds) {
  for (int64_t keys : {3, 5}) {
    const Inputs in = inputs(2, 2, 3, keys);
    expect_near(run_op("attention {causal = true}", in.tensors())[0],
                attention(in.q, in.k, in.v, {.causal = true}));
  }
  // With more queries than keys the first queries see nothing.
  const Tensor y = run_op("attention {causal = true}", inputs(1, 1, 3, 2).tensors())[0];
  EXPECT_TRUE(std::isnan(y.real_at(0)));
  EXPECT_TRUE(std::isfinite(y.real_at(3)));
}

TEST(Attention, Masks) {
  const Inputs in = inputs(4, 2, 3, 5);
  const Array added = Array::random({2, 1, 3, 5}, 9, 2);
  std::vector<Tensor> operands = in.tensors();
  operands.push_back(added.tensor());
  expect_near(run_op("attention", operands)[0],
              attention(in.q, in.k, in.v,
                        {.mask = [&](auto b, auto, auto i, auto j) { return added(b, 0, i, j); }}));
  operands[3] = tensor_of("bool[5] true false true true false");
  auto hidden = [](auto, auto, auto, auto j) { return j == 1 || j == 4 ? -INFINITY : 0.0; };
  expect_near(run_op("attention", operands)[0], attention(in.q, in.k, in.v, {.mask = hidden}));
  expect_near(run_op("attention {causal = true}", operands)[0],
              attention(in.q, in.k, in.v, {.causal = true, .mask = hidden}));
  operands[3] = tensor_of("bool[2, 1, 1, 5] true");
  expect_near(run_op("attention", operands)[0], attention(in.q, in.k, in.v, {}));
}

TEST(Attention, KeyValueCache) {
  const Inputs in = inputs(4, 2, 3, 5);
  auto part = [](const Array& a, int64_t begin, int64_t end) {
    Array p({a.dim(0), a.dim(1), end - begin, a.dim(3)});
    for (int64_t b = 0; b < a.dim(0); ++b)
      for (int64_t h = 0; h < a.dim(1); ++h)
        for (int64_t i = begin; i < end; ++i)
          for (int64_t d = 0; d < a.dim(3); ++d) p(b, h, i - begin, d) = a(b, h, i, d);
    return p;
  };
  for (int64_t past : {0, 2}) {
    const std::vector<Tensor> results =
        run_op("attention {causal = true}",
               {in.q.tensor(), part(in.k, past, 5).tensor(), part(in.v, past, 5).tensor(), Tensor(),
                part(in.k, 0, past).tensor(), part(in.v, 0, past).tensor()});
    ASSERT_EQ(results.size(), 3u);
    expect_near(results[0], attention(in.q, in.k, in.v, {.causal = true}));
    expect_near(results[1], in.k);
    expect_near(results[2], in.v);
  }
}

TEST(Attention, SymbolicDims) {
  expect_symbolic("attention", {"f32[N, 4, M, 8]", "f32[N, 4, K, 8]", "f32[N, 4, K, 8]"});
  expect_symbolic("attention {causal = true}",
                  {"f32[N, 4, M, 8]", "f32[N, 2, M, 8]", "f32[N, 2, M, 8]", "bool[N, 1, 1, M]"});
  expect_symbolic("attention {causal = true}",
                  {"f32[2, 4, 1, 8]", "f32[2, 2, 1, 8]", "f32[2, 2, 1, 8]", "", "f32[2, 2, N, 8]",
                   "f32[2, 2, N, 8]"});
}

TEST(Attention, Errors) {
  const std::string_view q = "f32[2, 4, 3, 8]", k = "f32[2, 2, 5, 8]";
  expect_infer_error("attention", {"f32[4, 3, 8]", k, k}, "query is f32[4, 3, 8], of rank 3");
  expect_infer_error("attention", {q, "f32[2, 2, 5, 7]", k},
                     "key is f32[2, 2, 5, 7], want f32[2, 2, 5, 8]");
  expect_infer_error("attention", {q, k, "f32[2, 2, 6, 8]"},
                     "value is f32[2, 2, 6, 8], want f32[2, 2, 5, 8]");
  expect_infer_error("attention", {q, "f32[2, 3, 5, 8]", "f32[2, 3, 5, 8]"},
                     "4 heads ... query ... 3 heads ... key");
  expect_infer_error("attention", {q, "f64[2, 2, 5, 8]", k}, "f32, f64 and f32");
  expect_infer_error("attention", {q, k, k, "bool[4, 5]"},
                     "mask is bool[4, 5], which does not broadcast");
  expect_infer_error("attention", {q, k, k, "i32[5]"}, "mask ... i32[5] ... bool or f32");
  expect_infer_error("attention", {q, k, k, "", k}, "past_key ... past_value");
  expect_infer_error("attention", {q, k, k, "", "f32[2, 2, 1, 7]", k},
                     "past_key is f32[2, 2, 1, 7], want f32[2, 2, 1, 8]");
  expect_infer_error("attention", {q, k, k, "", k, "f32[2, 2, 1, 8]"},
                     "past_value is f32[2, 2, 1, 8], want f32[2, 2, 5, 8]");
}

// ---- Rotary embedding ---------------------------------------------------------------------------

Array rotary(const Array& x, const Array& cos, const Array& sin, bool interleaved) {
  Array y = x;
  const int64_t pairs = cos.dims().back();
  auto at = [](const Array& t, int64_t b, int64_t s, int64_t p) {
    return t.dims().size() == 2 ? t(s, p) : t(b, s, p);
  };
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t h = 0; h < x.dim(1); ++h)
      for (int64_t s = 0; s < x.dim(2); ++s)
        for (int64_t p = 0; p < pairs; ++p) {
          const int64_t i = interleaved ? 2 * p : p, j = interleaved ? 2 * p + 1 : p + pairs;
          const double c = at(cos, b, s, p), n = at(sin, b, s, p);
          y(b, h, s, i) = x(b, h, s, i) * c - x(b, h, s, j) * n;
          y(b, h, s, j) = x(b, h, s, j) * c + x(b, h, s, i) * n;
        }
  return y;
}

TEST(RotaryEmbedding, TurnsPairs) {
  const Array x = Array::random({2, 3, 4, 6}, 1);
  for (const Ints& table : {Ints{4, 3}, Ints{2, 4, 3}, Ints{4, 2}, Ints{2, 4, 1}}) {
    const Array cos = Array::random(table, 2), sin = Array::random(table, 3);
    expect_near(run_op("rotary_embedding", {x.tensor(), cos.tensor(), sin.tensor()})[0],
                rotary(x, cos, sin, false));
    expect_near(run_op("rotary_embedding {interleaved = true}",
                       {x.tensor(), cos.tensor(), sin.tensor()})[0],
                rotary(x, cos, sin, true));
  }
  expect_symbolic("rotary_embedding", {"f32[N, 2, M, 8]", "f32[M, 4]", "f32[M, 4]"});
  expect_symbolic("rotary_embedding {interleaved = true}",
                  {"f32[N, 2, M, 8]", "f32[N, M, 3]", "f32[N, M, 3]"});
  expect_infer_error("rotary_embedding", {"f32[2, 3, 4, 6]", "f32[4, 4]", "f32[4, 4]"},
                     "cos ... 8 ... head dim ... 6");
  expect_infer_error("rotary_embedding", {"f32[2, 3, 4, 6]", "f32[5, 3]", "f32[5, 3]"},
                     "cos is f32[5, 3], want f32[4, 3]");
  expect_infer_error("rotary_embedding", {"f32[2, 3, 4, 6]", "f32[4, 3]", "f32[4, 2]"},
                     "sin is f32[4, 2], want f32[4, 3]");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
