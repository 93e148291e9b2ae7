#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Pointwise;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(testing::DoubleNear(1e-5), expected);
}

// Numbers without a pattern, in -1..1.
Tensor noise(const Ints& dims, int seed) {
  Type type = type_of(DType::f32, dims);
  Numbers values;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    values.push_back(std::sin(static_cast<double>(seed) * 7.7 + static_cast<double>(i) * 12.9898));
  return reals(dims, values);
}

// The formula with loops. Operands are [batch, heads, length, dim]; bias(b, h, i, j) is added.
struct Naive {
  int64_t batch, heads, kv_heads, queries, keys, dim;
  Numbers q, k, v;
  double scale, softcap = 0;
  std::function<double(int64_t, int64_t, int64_t, int64_t)> bias;
  std::function<double(int64_t)> sink = {};  // a score without value, per head

  Numbers scores(int64_t b, int64_t h, int64_t i) const {
    Numbers s;
    const int64_t g = h / (heads / kv_heads);
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += q[index(b, h, i, d, heads, queries)] * k[index(b, g, j, d, kv_heads, keys)];
      sum *= scale;
      if (softcap > 0) sum = softcap * std::tanh(sum / softcap);
      s.push_back(sum + (bias ? bias(b, h, i, j) : 0));
    }
    return s;
  }
  Numbers result() const {
    Numbers y;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i) row(b, h, i, y);
    return y;
  }

 private:
  size_t index(int64_t b, int64_t h, int64_t i, int64_t d, int64_t of, int64_t length) const {
    return static_cast<size_t>(((b * of + h) * length + i) * dim + d);
  }
  void row(int64_t b, int64_t h, int64_t i, Numbers& y) const {
    Numbers s = scores(b, h, i);
    double sum = sink ? std::exp(sink(h)) : 0;
    for (double x : s) sum += std::exp(x);
    for (int64_t d = 0; d < dim; ++d) {
      double value = 0;
      for (int64_t j = 0; j < keys; ++j)
        value += std::exp(s[static_cast<size_t>(j)]) *
                 v[index(b, h / (heads / kv_heads), j, d, kv_heads, keys)];
      y.push_back(sum == 0 ? 0 : value / sum);
    }
  }
};

Naive naive(const Tensor& q, const Tensor& k, const Tensor& v) {
  Ints a = q.type().static_dims(), b = k.type().static_dims();
  return {a[0], a[1],       b[1],       a[2],       b[2],
          a[3], numbers(q), numbers(k), numbers(v), 1 / std::sqrt(static_cast<double>(a[3])),
          0,    {},         {}};
}

// [batch, heads, length, dim] as [batch, length, heads * dim].
Tensor flat(const Tensor& x) {
  Ints d = x.type().static_dims();
  Numbers from = numbers(x), to(from.size());
  for (int64_t i = 0; i < x.elements(); ++i) {
    int64_t w = i % d[3], s = i / d[3] % d[2], h = i / d[3] / d[2] % d[1],
            b = i / d[3] / d[2] / d[1];
    to[static_cast<size_t>(((b * d[2] + s) * d[1] + h) * d[3] + w)] = from[static_cast<size_t>(i)];
  }
  return reals({d[0], d[2], d[1] * d[3]}, to);
}
Numbers flat(const Numbers& values, const Ints& dims) { return numbers(flat(reals(dims, values))); }

// Joined along dim 2 of four.
Tensor joined(const Tensor& a, const Tensor& b) {
  Ints da = a.type().static_dims(), db = b.type().static_dims();
  Numbers x = numbers(a), y = numbers(b), all;
  const int64_t rows = da[0] * da[1], na = da[2] * da[3], nb = db[2] * db[3];
  for (int64_t r = 0; r < rows; ++r) {
    all.insert(all.end(), x.begin() + r * na, x.begin() + (r + 1) * na);
    all.insert(all.end(), y.begin() + r * nb, y.begin() + (r + 1) * nb);
  }
  return reals({da[0], da[1], da[2] + db[2], da[3]}, all);
}

// ---- Attention ----------------------------------------------------------------------------------

TEST(OnnxAttention, OfRankFourAndThree) {
  Tensor q = noise({2, 4, 3, 5}, 1), k = noise({2, 2, 7, 5}, 2), v = noise({2, 2, 7, 5}, 3);
  Naive want = naive(q, k, v);
  EXPECT_THAT(numbers(run_node("Attention", 23, {q, k, v})), near(want.result()));
  Attributes heads = {{"q_num_heads", 4}, {"kv_num_heads", 2}};
  EXPECT_THAT(numbers(run_node("Attention", 23, {flat(q), flat(k), flat(v)}, heads)),
              near(flat(want.result(), {2, 4, 3, 5})));
  want.scale = 0.3, want.softcap = 0.5;
  Attributes more = {{"scale", 0.3}, {"softcap", 0.5}};
  EXPECT_THAT(numbers(run_node("Attention", 24, {q, k, v}, more)), near(want.result()));
  EXPECT_THAT(import_error("Attention", 23, {flat(q), flat(k), flat(v)}),
              HasSubstr("'q_num_heads' is missing"));
  EXPECT_THAT(import_error("Attention", 23, {q, flat(k), v}), HasSubstr("K is"));
}

TEST(OnnxAttention, CausalQueriesCountFromThePast) {
  Tensor q = noise({1, 2, 3, 4}, 1), k = noise({1, 2, 3, 4}, 2), v = noise({1, 2, 3, 4}, 3);
  Tensor past_k = noise({1, 2, 2, 4}, 4), past_v = noise({1, 2, 2, 4}, 5);
  Naive want = naive(q, joined(past_k, k), joined(past_v, v));
  want.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 2 ? 0 : -kInfinity; };
  auto y = run_outputs("Attention", 23, {q, k, v, none(), past_k, past_v}, {{"is_causal", 1}},
                       {.outputs = 3});
  EXPECT_THAT(numbers(y[0]), near(want.result()));
  EXPECT_EQ(numbers(y[1]), numbers(joined(past_k, k)));
  EXPECT_EQ(numbers(y[2]), numbers(joined(past_v, v)));
  // More keys than queries, no past: the first query sees the first key alone.
  Tensor long_k = noise({1, 2, 6, 4}, 6), long_v = noise({1, 2, 6, 4}, 7);
  want = naive(q, long_k, long_v);
  want.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : -kInfinity; };
  for (bool symbolic : {false, true})
    EXPECT_THAT(numbers(run_node("Attention", 23, {q, long_k, long_v}, {{"is_causal", 1}},
                                 {.symbolic = symbolic})),
                near(want.result()));
  EXPECT_THAT(import_error("Attention", 23, {q, k, v, none(), past_k}),
              says("past_key ... past_value"));
}

TEST(OnnxAttention, MasksHideOrAdd) {
  Tensor q = noise({1, 2, 2, 4}, 1), k = noise({1, 2, 3, 4}, 2), v = noise({1, 2, 3, 4}, 3);
  Tensor added = noise({2, 3}, 4);
  Naive want = naive(q, k, v);
  want.bias = [&](int64_t, int64_t, int64_t i, int64_t j) { return added.real_at(i * 3 + j); };
  EXPECT_THAT(numbers(run_node("Attention", 23, {q, k, v, added})), near(want.result()));
  // A query that sees nothing gives 0.
  Tensor seen = integers({2, 3}, {1, 0, 1, 0, 0, 0}, DType::boolean);
  want.bias = [&](int64_t, int64_t, int64_t i, int64_t j) {
    return seen.integer_at(i * 3 + j) != 0 ? 0 : -kInfinity;
  };
  EXPECT_THAT(numbers(run_node("Attention", 23, {q, k, v, seen})), near(want.result()));
  // From version 24 on the last keys may be left out of the mask.
  Tensor first = integers({2, 2}, {1, 0, 1, 1}, DType::boolean);
  want.bias = [&](int64_t, int64_t, int64_t i, int64_t j) {
    return j < 2 && first.integer_at(i * 2 + j) != 0 ? 0 : -kInfinity;
  };
  EXPECT_THAT(numbers(run_node("Attention", 24, {q, k, v, first})), near(want.result()));
}

// The number of all keys is a symbol of its own in the file; it need not be proved that it is
// right.
TEST(OnnxAttention, MasksOverKeysOfSymbolicLengths) {
  Tensor q = noise({1, 2, 4, 5}, 1), k = noise({1, 2, 4, 5}, 2), v = noise({1, 2, 4, 5}, 3);
  Tensor past_k = noise({1, 2, 3, 5}, 4), past_v = noise({1, 2, 3, 5}, 5), mask = noise({4, 7}, 6);
  Naive want = naive(q, joined(past_k, k), joined(past_v, v));
  want.bias = [&](int64_t, int64_t, int64_t i, int64_t j) { return mask.real_at(i * 7 + j); };
  const NodeOptions options = {.symbolic = true, .numbers = {2, 5}};
  const std::vector<Operand> operands = {q, k, v, mask, past_k, past_v};
  for (int version : {23, 24}) {
    EXPECT_THAT(numbers(run_node("Attention", version, operands, {}, options)),
                near(want.result()));
    const std::string bytes = node_model("Attention", version, operands, {}, options);
    Result<Model> model = parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", ".");
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    ASSERT_EQ(model->segments.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<GraphSegment>(model->segments[0].kind));
  }
}

TEST(OnnxAttention, PaddedCacheHasALengthPerSequence) {
  Tensor q = noise({2, 1, 2, 4}, 1), k = noise({2, 1, 5, 4}, 2), v = noise({2, 1, 5, 4}, 3);
  Ints lengths = {1, 4};
  Tensor length = integers({2}, lengths);
  std::vector<Operand> operands = {q, k, v, none(), none(), none(), length};
  Naive want = naive(q, k, v);
  want.bias = [&](int64_t b, int64_t, int64_t, int64_t j) {
    return j < lengths[static_cast<size_t>(b)] ? 0 : -kInfinity;
  };
  EXPECT_THAT(numbers(run_node("Attention", 24, operands)), near(want.result()));
  // The last of two queries is the last of the valid tokens; the first may come before all.
  want.bias = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    return j <= i + lengths[static_cast<size_t>(b)] - 2 ? 0 : -kInfinity;
  };
  for (bool symbolic : {false, true})
    EXPECT_THAT(
        numbers(run_node("Attention", 24, operands, {{"is_causal", 1}}, {.symbolic = symbolic})),
        near(want.result()));
}

TEST(OnnxAttention, ShowsWhatHappensBetween) {
  Tensor q = noise({1, 1, 2, 4}, 1), k = noise({1, 1, 3, 4}, 2), v = noise({1, 1, 3, 4}, 3);
  Tensor added = reals({2, 3}, {0, 1, -kInfinity, -kInfinity, -kInfinity, -kInfinity});
  auto shown = [&](int mode) {
    Attributes a = {{"softcap", 0.7}, {"qk_matmul_output_mode", mode}};
    return numbers(run_outputs("Attention", 24, {q, k, v, added}, a, {.outputs = 4})[3]);
  };
  Naive raw = naive(q, k, v), cap = raw;
  cap.softcap = 0.7;
  auto rows = [](const Naive& n) {
    Numbers all = n.scores(0, 0, 0), second = n.scores(0, 0, 1);
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  EXPECT_THAT(shown(0), near(rows(raw)));
  EXPECT_THAT(shown(1), near(rows(cap)));
  Numbers c = rows(cap);
  EXPECT_THAT(shown(2)[1], testing::DoubleNear(c[1] + 1, 1e-5));
  EXPECT_EQ(shown(2)[2], -kInfinity);
  double p = 1 / (1 + std::exp(c[1] + 1 - c[0]));
  EXPECT_THAT(shown(3), near({p, 1 - p, 0, 0, 0, 0}));
  EXPECT_THAT(import_error("Attention", 24, {q, k, v}, {{"qk_matmul_output_mode", 4}}),
              HasSubstr("not 0 to 3"));
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

// Turns the pair at (first, second) of row `at` by the angle's cosine and sine.
void turn(Numbers& x, size_t at, size_t first, size_t second, double c, double s) {
  double a = x[at + first], b = x[at + second];
  x[at + first] = a * c - b * s;
  x[at + second] = b * c + a * s;
}

TEST(OnnxRotary, TurnsPairsByPosition) {
  Tensor x = noise({1, 2, 3, 6}, 1), cos = noise({5, 2}, 2), sin = noise({5, 2}, 3);
  Ints places = {4, 0, 2};
  Tensor ids = integers({1, 3}, places);
  for (bool interleaved : {false, true}) {
    Numbers want = numbers(x);
    for (size_t h = 0; h < 2; ++h)
      for (size_t s = 0; s < 3; ++s)
        for (size_t p = 0; p < 2; ++p) {
          int64_t angle = places[s] * 2 + static_cast<int64_t>(p);
          turn(want, (h * 3 + s) * 6, interleaved ? 2 * p : p, interleaved ? 2 * p + 1 : p + 2,
               cos.real_at(angle), sin.real_at(angle));
        }
    Attributes a = {{"rotary_embedding_dim", 4}, {"interleaved", interleaved ? 1 : 0}};
    EXPECT_THAT(numbers(run_node("RotaryEmbedding", 23, {x, cos, sin, ids}, a)), near(want));
    Attributes heads = a;
    heads.emplace_back("num_heads", 2);
    EXPECT_THAT(numbers(run_node("RotaryEmbedding", 23, {flat(x), cos, sin, ids}, heads)),
                near(flat(want, {1, 2, 3, 6})));
    // The contributed op has the positions second.
    EXPECT_THAT(numbers(run_node("RotaryEmbedding", 1, {flat(x), ids, cos, sin}, heads,
                                 {.domain = "com.microsoft"})),
                near(flat(want, {1, 2, 3, 6})));
  }
  EXPECT_THAT(import_error("RotaryEmbedding", 23, {x, cos, sin, ids}),
              says("cos_cache ... 2 ... 6"));
}

TEST(OnnxRotary, StartOfAllSequences) {
  Tensor x = noise({2, 1, 2, 4}, 1), cos = noise({5, 2}, 2), sin = noise({5, 2}, 3);
  NodeOptions contributed = {.domain = "com.microsoft"};
  Tensor ids = integers({2, 2}, {3, 4, 3, 4});
  EXPECT_EQ(
      numbers(run_node("RotaryEmbedding", 1, {x, integers({1}, {3}), cos, sin}, {}, contributed)),
      numbers(run_node("RotaryEmbedding", 1, {x, ids, cos, sin}, {}, contributed)));
}

// ---- Contributed --------------------------------------------------------------------------------

const NodeOptions kContributed = {.domain = "com.microsoft"};

TEST(OnnxMultiHeadAttention, PaddingMaskBiasAndPast) {
  Tensor q = noise({2, 2, 2, 3}, 1), k = noise({2, 2, 2, 3}, 2), v = noise({2, 2, 2, 3}, 3);
  Tensor past_k = noise({2, 2, 1, 3}, 4), past_v = noise({2, 2, 1, 3}, 5);
  Tensor mask = integers({2, 3}, {1, 1, 0, 1, 0, 1}, DType::i32), bias = noise({1, 2, 2, 3}, 6);
  Naive want = naive(q, joined(past_k, k), joined(past_v, v));
  want.bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    double hidden = mask.integer_at(b * 3 + j) != 0 ? 0 : -10000;
    return hidden + bias.real_at((h * 2 + i) * 3 + j) + (j <= i + 1 ? 0 : -kInfinity);
  };
  auto y = run_outputs(
      "MultiHeadAttention", 1, {flat(q), flat(k), flat(v), none(), mask, bias, past_k, past_v},
      {{"num_heads", 2}, {"unidirectional", 1}}, {.domain = "com.microsoft", .outputs = 3});
  EXPECT_THAT(numbers(y[0]), near(flat(want.result(), {2, 2, 2, 3})));
  EXPECT_EQ(numbers(y[1]), numbers(joined(past_k, k)));
}

TEST(OnnxMultiHeadAttention, PackedOperands) {
  // [batch, length, heads, 3, dim]
  Tensor packed = noise({1, 4, 2, 3, 2}, 1), bias = noise({12}, 2);
  std::vector<Numbers> parts(3, Numbers(16));
  for (size_t part = 0; part < 3; ++part)
    for (size_t s = 0; s < 4; ++s)
      for (size_t h = 0; h < 2; ++h)
        for (size_t d = 0; d < 2; ++d)
          parts[part][(h * 4 + s) * 2 + d] =
              packed.real_at(static_cast<int64_t>(((s * 2 + h) * 3 + part) * 2 + d)) +
              bias.real_at(static_cast<int64_t>(part * 4 + h * 2 + d));
  const Ints dims = {1, 2, 4, 2};
  Naive want = naive(reals(dims, parts[0]), reals(dims, parts[1]), reals(dims, parts[2]));
  EXPECT_THAT(numbers(run_node("MultiHeadAttention", 1, {packed, none(), none(), bias},
                               {{"num_heads", 2}}, kContributed)),
              near(flat(want.result(), dims)));
  EXPECT_THAT(import_error("MultiHeadAttention", 1, {packed}, {{"num_heads", 3}}, kContributed),
              HasSubstr("3 heads, 3, dim"));
}

// x times the weights plus bias, cut in three and split in heads.
std::vector<Tensor> projected(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t heads) {
  Ints d = x.type().static_dims();
  const int64_t total = w.type().static_dims()[1], hidden = total / 3, dim = hidden / heads;
  std::vector<Numbers> parts(3, Numbers(static_cast<size_t>(d[0] * d[1] * hidden)));
  for (int64_t b = 0; b < d[0]; ++b)
    for (int64_t s = 0; s < d[1]; ++s)
      for (int64_t c = 0; c < total; ++c) {
        double sum = bias.real_at(c);
        for (int64_t i = 0; i < d[2]; ++i)
          sum += x.real_at((b * d[1] + s) * d[2] + i) * w.real_at(i * total + c);
        int64_t h = c % hidden / dim;
        parts[static_cast<size_t>(c / hidden)]
             [static_cast<size_t>(((b * heads + h) * d[1] + s) * dim + c % dim)] = sum;
      }
  std::vector<Tensor> result;
  for (const Numbers& p : parts) result.push_back(reals({d[0], heads, d[1], dim}, p));
  return result;
}

TEST(OnnxContributedAttention, ProjectsAndMasksInItsForms) {
  Tensor x = noise({2, 3, 4}, 1), w = noise({4, 12}, 2), bias = noise({12}, 3);
  std::vector<Tensor> p = projected(x, w, bias, 2);
  Naive want = naive(p[0], p[1], p[2]);
  Attributes a = {{"num_heads", 2}};
  auto run = [&](Operand mask, Attributes attributes) {
    return numbers(
        run_node("Attention", 1, {x, w, bias, std::move(mask)}, attributes, kContributed));
  };
  auto wanted = [&](std::function<bool(int64_t, int64_t, int64_t)> visible) {
    want.bias = [=](int64_t b, int64_t, int64_t i, int64_t j) {
      return visible(b, i, j) ? 0 : -10000;
    };
    return near(flat(want.result(), {2, 2, 3, 2}));
  };
  EXPECT_THAT(run(none(), a), wanted([](int64_t, int64_t, int64_t) { return true; }));
  Attributes causal = {{"num_heads", 2}, {"unidirectional", 1}};
  EXPECT_THAT(run(none(), causal), wanted([](int64_t, int64_t i, int64_t j) { return j <= i; }));
  EXPECT_THAT(run(integers({2}, {2, 3}, DType::i32), a),
              wanted([](int64_t b, int64_t, int64_t j) { return j < b + 2; }));
  EXPECT_THAT(run(integers({4}, {3, 3, 1, 0}, DType::i32), a),
              wanted([](int64_t b, int64_t, int64_t j) { return j >= 1 - b; }));
  EXPECT_THAT(run(integers({2, 3}, {1, 0, 1, 1, 1, 0}, DType::i32), a),
              wanted([](int64_t b, int64_t, int64_t j) { return b == 0 ? j != 1 : j != 2; }));
  Tensor past = noise({2, 2, 2, 1, 2}, 4);
  auto y = run_outputs("Attention", 1, {x, w, bias, none(), past}, causal,
                       {.domain = "com.microsoft", .outputs = 2});
  EXPECT_EQ(y[1].type().static_dims(), (Ints{2, 2, 2, 4, 2}));
  EXPECT_EQ(y[1].real_at(0), past.real_at(0));
  EXPECT_NEAR(y[1].real_at(2), p[1].real_at(0), 1e-5);
}

// ---- GroupQueryAttention ------------------------------------------------------------------------

Tensor counts(const Ints& values) {
  return integers({static_cast<int64_t>(values.size())}, values, DType::i32);
}
Tensor count(int64_t value) { return integers({}, {value}, DType::i32); }

TEST(OnnxGroupQueryAttention, PromptIsCausal) {
  Tensor q = noise({2, 4, 3, 4}, 1), k = noise({2, 2, 3, 4}, 2), v = noise({2, 2, 3, 4}, 3);
  Naive want = naive(q, k, v);
  want.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : -kInfinity; };
  Attributes a = {{"num_heads", 4}, {"kv_num_heads", 2}};
  std::vector<Operand> operands = {flat(q), flat(k),        flat(v), none(),
                                   none(),  counts({2, 2}), count(3)};
  for (bool symbolic : {false, true}) {
    auto y = run_outputs(
        "GroupQueryAttention", 1, operands, a,
        {.domain = "com.microsoft", .outputs = 3, .symbolic = symbolic, .numbers = {8, 16}});
    EXPECT_THAT(numbers(y[0]), near(flat(want.result(), {2, 4, 3, 4})));
    EXPECT_EQ(numbers(y[1]), numbers(k));
  }
  // With a window of two, and a score that all heads have besides.
  want.bias = [](int64_t, int64_t, int64_t i, int64_t j) {
    return j <= i && j > i - 2 ? 0 : -kInfinity;
  };
  want.sink = [](int64_t) { return 0; };
  Attributes more = a;
  more.insert(more.end(), {{"local_window_size", 2}, {"smooth_softmax", 1}});
  EXPECT_THAT(numbers(run_node("GroupQueryAttention", 1, operands, more, kContributed)),
              near(flat(want.result(), {2, 4, 3, 4})));
}

TEST(OnnxGroupQueryAttention, SharedCacheTakesRowsWhereTheyBelong) {
  // A cache of 5 rows; two sequences with 1 and 3 valid ones get one row each.
  Tensor q = noise({2, 2, 1, 4}, 1), k = noise({2, 1, 1, 4}, 2), v = noise({2, 1, 1, 4}, 3);
  Tensor past_k = noise({2, 1, 5, 4}, 4), past_v = noise({2, 1, 5, 4}, 5);
  Ints valid = {1, 3};
  Numbers keys = numbers(past_k), values = numbers(past_v);
  for (size_t b = 0; b < 2; ++b)
    for (size_t d = 0; d < 4; ++d) {
      size_t at = (b * 5 + static_cast<size_t>(valid[b])) * 4 + d;
      keys[at] = k.real_at(static_cast<int64_t>(b * 4 + d));
      values[at] = v.real_at(static_cast<int64_t>(b * 4 + d));
    }
  Naive want = naive(q, reals({2, 1, 5, 4}, keys), reals({2, 1, 5, 4}, values));
  want.bias = [&](int64_t b, int64_t, int64_t, int64_t j) {
    return j <= valid[static_cast<size_t>(b)] ? 0 : -kInfinity;
  };
  Attributes a = {{"num_heads", 2}, {"kv_num_heads", 1}};
  // The total is data, or a constant.
  for (bool is_constant : {false, true}) {
    Operand total = is_constant ? constant(count(4)) : Operand(count(4));
    auto y = run_outputs("GroupQueryAttention", 1,
                         {flat(q), flat(k), flat(v), past_k, past_v, counts({1, 3}), total}, a,
                         {.domain = "com.microsoft", .outputs = 3});
    EXPECT_THAT(numbers(y[0]), near(flat(want.result(), {2, 2, 1, 4})));
    EXPECT_EQ(numbers(y[1]), keys);
    EXPECT_EQ(numbers(y[2]), values);
  }
}

TEST(OnnxGroupQueryAttention, GrowingCacheWithRotationAndPackedOperands) {
  Tensor q = noise({1, 2, 2, 4}, 1), k = noise({1, 1, 2, 4}, 2), v = noise({1, 1, 2, 4}, 3);
  Tensor past_k = noise({1, 1, 3, 4}, 4), past_v = noise({1, 1, 3, 4}, 5);
  Tensor cos = noise({8, 2}, 6), sin = noise({8, 2}, 7);
  Numbers packed;
  for (int64_t s = 0; s < 2; ++s) {
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 4; ++d) packed.push_back(q.real_at((h * 2 + s) * 4 + d));
    for (const Tensor& t : {k, v})
      for (int64_t d = 0; d < 4; ++d) packed.push_back(t.real_at(s * 4 + d));
  }
  Numbers turned_q = numbers(q), turned_k = numbers(k);
  for (size_t s = 0; s < 2; ++s)
    for (size_t p = 0; p < 2; ++p) {
      double c = cos.real_at(static_cast<int64_t>((3 + s) * 2 + p));
      double d = sin.real_at(static_cast<int64_t>((3 + s) * 2 + p));
      for (size_t h = 0; h < 2; ++h) turn(turned_q, (h * 2 + s) * 4, p, p + 2, c, d);
      turn(turned_k, s * 4, p, p + 2, c, d);
    }
  Tensor all_k = joined(past_k, reals({1, 1, 2, 4}, turned_k));
  Naive want = naive(reals({1, 2, 2, 4}, turned_q), all_k, joined(past_v, v));
  want.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 3 ? 0 : -kInfinity; };
  want.softcap = 0.9;
  Attributes a = {{"num_heads", 2}, {"kv_num_heads", 1}, {"do_rotary", 1}, {"softcap", 0.9}};
  // Without 2 the length is open as well, which takes more than one stop to find out.
  for (const Ints& known : {Ints{2, 4, 16}, Ints{4, 16}})
    for (bool symbolic : {false, true})
      for (bool is_constant : {false, true}) {
        Operand total = is_constant ? constant(count(5)) : Operand(count(5));
        auto y = run_outputs(
            "GroupQueryAttention", 1,
            {reals({1, 2, 16}, packed), none(), none(), past_k, past_v, counts({4}), total, cos,
             sin},
            a, {.domain = "com.microsoft", .outputs = 3, .symbolic = symbolic, .numbers = known});
        EXPECT_THAT(numbers(y[0]), near(flat(want.result(), {1, 2, 2, 4})));
        EXPECT_THAT(numbers(y[1]), near(numbers(all_k)));
      }
}

TEST(OnnxGroupQueryAttention, RefusesQuantizedCaches) {
  Tensor q = noise({1, 1, 4}, 1);
  Attributes a = {{"num_heads", 1}, {"kv_num_heads", 1}, {"k_quant_type", "PER_TENSOR"}};
  EXPECT_THAT(import_error("GroupQueryAttention", 1, {q, q, q}, a, kContributed),
              HasSubstr("quantized caches"));
  a.back() = {"local_window_size", 0};
  EXPECT_THAT(import_error("GroupQueryAttention", 1, {q, q, q}, a, kContributed),
              HasSubstr("local_window_size is 0"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
