#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Ops of one step of a decoder: DecoderMaskedMultiHeadAttention and DynamicQuantizeLSTM of ONNX
// Runtime, beside plain loops.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Pointwise;

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(testing::DoubleNear(2e-5), expected);
}
Tensor drawn(Rng& rng, const Ints& dims) {
  Numbers values;
  for (int64_t i = 0; i < type_of(DType::f32, dims).static_elements(); ++i)
    values.push_back(rng.uniform(-1, 1));
  return reals(dims, values);
}

// ---- Attention ----------------------------------------------------------------------------------

// One query of each row; keys and values by a function of row, head, position and place.
struct Plain {
  using Entry = std::function<double(int64_t r, int64_t h, int64_t t, int64_t d)>;
  int64_t rows, heads, keys, dim;
  Entry key = {}, value = {};
  std::function<double(int64_t r, int64_t h, int64_t d)> query = {};
  std::function<double(int64_t r, int64_t h, int64_t t)> added = {};

  Numbers result() const {
    Numbers y;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t h = 0; h < heads; ++h) {
        Numbers p;
        double sum = 0;
        for (int64_t t = 0; t < keys; ++t) {
          double score = 0;
          for (int64_t d = 0; d < dim; ++d) score += query(r, h, d) * key(r, h, t, d);
          p.push_back(std::exp(score / std::sqrt(static_cast<double>(dim)) + added(r, h, t)));
          sum += p.back();
        }
        for (int64_t d = 0; d < dim; ++d) {
          double all = 0;
          for (int64_t t = 0; t < keys; ++t)
            all += p[static_cast<size_t>(t)] / sum * value(r, h, t, d);
          y.push_back(all);
        }
      }
    return y;
  }
};

constexpr int64_t kRows = 4, kHeads = 2, kDim = 3, kWidth = kHeads * kDim, kMost = 6;

struct Decoder {
  Rng rng{7};
  Tensor query = drawn(rng, {kRows, 1, kWidth}), key = drawn(rng, {kRows, 1, kWidth}),
         value = drawn(rng, {kRows, 1, kWidth}), bias = drawn(rng, {3 * kWidth}),
         past_key = drawn(rng, {kRows, kHeads, kMost, kDim}),
         past_value = drawn(rng, {kRows, kHeads, kMost, kDim});

  // A number of a token, [row, 1, head * dim], with its part of the bias.
  double token(const Tensor& t, int part, int64_t r, int64_t h, int64_t d) const {
    const int64_t at = h * kDim + d;
    return t.real_at(r * kWidth + at) + bias.real_at(part * kWidth + at);
  }
  static double cached(const Tensor& t, int64_t r, int64_t h, int64_t at, int64_t d) {
    return t.real_at(((r * kHeads + h) * kMost + at) * kDim + d);
  }
  // `past` rows of the cache, of the row that `source` names, then the token.
  Plain plain(int64_t past, std::function<int64_t(int64_t r, int64_t t)> source) const {
    Plain p = {.rows = kRows, .heads = kHeads, .keys = past + 1, .dim = kDim};
    p.query = [this](int64_t r, int64_t h, int64_t d) { return token(query, 0, r, h, d); };
    p.key = [=, this](int64_t r, int64_t h, int64_t t, int64_t d) {
      return t == past ? token(key, 1, r, h, d) : cached(past_key, source(r, t), h, t, d);
    };
    p.value = [=, this](int64_t r, int64_t h, int64_t t, int64_t d) {
      return t == past ? token(value, 2, r, h, d) : cached(past_value, source(r, t), h, t, d);
    };
    p.added = [](int64_t, int64_t, int64_t) { return 0.0; };
    return p;
  }
};

const auto kOwn = [](int64_t r, int64_t) { return r; };
NodeOptions decoder_options(size_t outputs = 1) {
  return {.domain = "com.microsoft", .outputs = outputs};
}
constexpr std::string_view kOp = "DecoderMaskedMultiHeadAttention";

TEST(OnnxDecoderAttention, WritesItsTokenIntoASharedBuffer) {
  const Decoder d;
  for (int64_t past : {0, 3, 5}) {
    const Tensor mask = integers(
        {kRows, past + 1},
        [&] {
          Ints all(static_cast<size_t>(kRows * (past + 1)), 1);
          if (past > 0) all[1] = 0;
          return all;
        }(),
        DType::i32);
    Rng rng(9);
    const Tensor added = drawn(rng, {1, kHeads, 1, past + 1});
    Plain want = d.plain(past, kOwn);
    want.added = [&](int64_t r, int64_t h, int64_t t) {
      const bool is_hidden = mask.integer_at(r * (past + 1) + t) == 0;
      return (is_hidden ? -10000 : 0) + added.real_at(h * (past + 1) + t);
    };
    const Tensor at = integers({1}, {past}, DType::i32);
    for (const Operand& place : {Operand(at), constant(at)}) {
      const std::vector<Tensor> y = run_outputs(
          kOp, 1,
          {d.query, d.key, d.value, mask, added, d.past_key, d.past_value, place, none(), none(),
           d.bias},
          {{"num_heads", kHeads}, {"past_present_share_buffer", 1}}, decoder_options(3));
      EXPECT_THAT(numbers(y[0]), near(want.result()));
      ASSERT_EQ(y[1].type(), d.past_key.type());
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t h = 0; h < kHeads; ++h)
          for (int64_t t = 0; t < kMost; ++t)
            for (int64_t i = 0; i < kDim; ++i) {
              EXPECT_NEAR(
                  Decoder::cached(y[1], r, h, t, i),
                  t == past ? d.token(d.key, 1, r, h, i) : Decoder::cached(d.past_key, r, h, t, i),
                  1e-6);
              EXPECT_NEAR(Decoder::cached(y[2], r, h, t, i),
                          t == past ? d.token(d.value, 2, r, h, i)
                                    : Decoder::cached(d.past_value, r, h, t, i),
                          1e-6);
            }
    }
  }
}

TEST(OnnxDecoderAttention, GrowsACacheAndTakesPackedOperands) {
  const Decoder d;
  Numbers packed;
  for (int64_t r = 0; r < kRows; ++r)
    for (const Tensor* part : {&d.query, &d.key, &d.value})
      for (int64_t i = 0; i < kWidth; ++i) packed.push_back(part->real_at(r * kWidth + i));
  const std::vector<Tensor> y =
      run_outputs(kOp, 1,
                  {reals({kRows, 1, 3 * kWidth}, packed), none(), none(), none(), none(),
                   d.past_key, d.past_value, none(), none(), none(), d.bias},
                  {{"num_heads", kHeads}}, decoder_options(3));
  EXPECT_THAT(numbers(y[0]), near(d.plain(kMost, kOwn).result()));
  EXPECT_EQ(y[1].type(), type_of(DType::f32, {kRows, kHeads, kMost + 1, kDim}));
}

TEST(OnnxDecoderAttention, BeamsReadTheCachesOfOthers) {
  const Decoder d;
  constexpr int64_t kBeams = 2, kPast = 4;
  Ints beams;
  for (int64_t i = 0; i < kRows * kMost; ++i) beams.push_back(i * 7 % 3 % kBeams);
  const Plain want = d.plain(kPast, [&](int64_t r, int64_t t) {
    return r / kBeams * kBeams + beams[static_cast<size_t>(r * kMost + t)];
  });
  const Tensor y =
      run_outputs(kOp, 1,
                  {d.query, d.key, d.value, none(), none(), d.past_key, d.past_value,
                   integers({1}, {kPast}, DType::i32), integers({1}, {kBeams}, DType::i32),
                   integers({kRows / kBeams, kBeams, kMost}, beams, DType::i32), d.bias},
                  {{"num_heads", kHeads}, {"past_present_share_buffer", 1}}, decoder_options(3))[0];
  EXPECT_THAT(numbers(y), near(want.result()));
}

TEST(OnnxDecoderAttention, CrossesToKeysInHeads) {
  const Decoder d;
  Plain want = d.plain(kMost, kOwn);
  want.keys = kMost;
  const Tensor mask = integers({kRows, kMost}, Ints(kRows * kMost, 1), DType::i32);
  EXPECT_THAT(numbers(run_node(kOp, 1,
                               {d.query, d.past_key, d.past_value, mask, none(), none(), none(),
                                none(), none(), none(), d.bias},
                               {{"num_heads", kHeads}}, decoder_options())),
              near(want.result()));
}

TEST(OnnxDecoderAttention, SaysWhatDoesNotFit) {
  const Decoder d;
  const Attributes shared = {{"num_heads", kHeads}, {"past_present_share_buffer", 1}};
  Rng rng(1);
  EXPECT_THAT(import_error(kOp, 1, {drawn(rng, {kRows, 2, kWidth}), d.key, d.value},
                           {{"num_heads", kHeads}}, decoder_options()),
              HasSubstr("one token"));
  EXPECT_THAT(import_error(kOp, 1, {d.query, d.key, d.value}, shared, decoder_options()),
              HasSubstr("past_key"));
  EXPECT_THAT(import_error(kOp, 1, {d.query, d.key}, {{"num_heads", kHeads}}, decoder_options()),
              HasSubstr("come together"));
  const Tensor long_mask = integers({kRows, kMost + 1}, Ints(kRows * (kMost + 1), 1), DType::i32);
  EXPECT_THAT(import_error(kOp, 1,
                           {d.query, d.key, d.value, long_mask, none(), d.past_key, d.past_value,
                            integers({1}, {2}, DType::i32)},
                           shared, decoder_options()),
              HasSubstr("6 rows"));
}

// ---- DynamicQuantizeLSTM ------------------------------------------------------------------------

struct PlainLstm {
  int64_t time, batch, inputs, hidden;
  // One direction.
  Tensor x = {}, w = {}, r = {}, w_scale = {}, w_zero = {}, r_scale = {}, r_zero = {}, bias = {};
  Tensor peephole = {};
  std::vector<int64_t> lengths = {};
  double clip = 0;
  bool holds_ended = false;  // their last output counts for the range of the state

  // Rows by bytes, rounded over the range of all rows.
  Numbers product(const Numbers& rows, int64_t width, const Tensor& weights, const Tensor& scale,
                  const Tensor& zero) const {
    double low = 0, high = 0;
    for (double v : rows) low = std::min(low, v), high = std::max(high, v);
    const double step = high == low ? 1 / 255.0 : (high - low) / 255;
    const double middle = std::nearbyint(std::clamp(-low / step, 0.0, 255.0));
    Numbers y;
    const int64_t columns = 4 * hidden;
    for (int64_t i = 0; i < std::ssize(rows) / width; ++i)
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        const int64_t own = scale.elements() == 1 ? 0 : c;
        for (int64_t k = 0; k < width; ++k) {
          const double v = rows[static_cast<size_t>(i * width + k)];
          const double q = std::clamp(std::nearbyint(v / step) + middle, 0.0, 255.0);
          sum += (q - middle) *
                 static_cast<double>(weights.integer_at(k * columns + c) - zero.integer_at(own));
        }
        y.push_back(sum * step * scale.real_at(own));
      }
    return y;
  }

  // All outputs, [time, batch, hidden].
  Numbers result(const Numbers& first_cell = {}) const {
    const Numbers sums = product(numbers(x), inputs, w, w_scale, w_zero);
    Numbers h(static_cast<size_t>(batch * hidden)), c = first_cell.empty() ? h : first_cell, all;
    const auto squashed = [](double v) { return 1 / (1 + std::exp(-v)); };
    const auto cut = [&](double v) { return clip > 0 ? std::clamp(v, -clip, clip) : v; };
    for (int64_t t = 0; t < time; ++t) {
      Numbers state = h;
      for (int64_t i = 0; i < batch * hidden; ++i)
        if (!holds_ended && t > lengths[static_cast<size_t>(i / hidden)])
          state[static_cast<size_t>(i)] = 0;
      const Numbers back = product(state, hidden, r, r_scale, r_zero);
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t j = 0; j < hidden; ++j) {
          const auto gate = [&](int64_t g) {
            const int64_t column = g * hidden + j;
            return sums[static_cast<size_t>((t * batch + b) * 4 * hidden + column)] +
                   back[static_cast<size_t>(b * 4 * hidden + column)] + bias.real_at(column) +
                   bias.real_at(4 * hidden + column);
          };
          const auto peep = [&](int64_t g) { return peephole.real_at(g * hidden + j); };
          const auto at = static_cast<size_t>(b * hidden + j);
          const bool runs = t < lengths[static_cast<size_t>(b)];
          const double in = squashed(cut(gate(0) + peep(0) * c[at])),
                       forget = squashed(cut(gate(2) + peep(2) * c[at]));
          const double next = forget * c[at] + in * std::tanh(cut(gate(3)));
          const double out = squashed(cut(gate(1) + peep(1) * next)) * std::tanh(next);
          all.push_back(runs ? out : 0);
          if (!runs) continue;
          c[at] = next, h[at] = out;
        }
    }
    return all;
  }
};

Tensor bytes(Rng& rng, const Ints& dims, DType dtype, int64_t low, int64_t high) {
  Ints values;
  for (int64_t i = 0; i < type_of(dtype, dims).static_elements(); ++i)
    values.push_back(rng.between(low, high));
  return integers(dims, values, dtype);
}
Tensor positive(Rng& rng, const Ints& dims) {
  Numbers values;
  for (int64_t i = 0; i < type_of(DType::f32, dims).static_elements(); ++i)
    values.push_back(rng.uniform(0.004, 0.02));
  return reals(dims, values);
}

TEST(OnnxDynamicQuantizeLstm, RoundsItsDataInEachStep) {
  for (int i = 0; i < 12; ++i) {
    Rng rng(static_cast<uint64_t>(40 + i));
    const bool is_signed = i % 2 == 0, by_column = i % 3 != 0, is_cut = i % 4 == 1;
    const DType dtype = is_signed ? DType::i8 : DType::u8;
    PlainLstm p = {.time = 4, .batch = 3, .inputs = 5, .hidden = 2 + i % 3};
    const int64_t columns = 4 * p.hidden;
    const Ints per = by_column ? Ints{1, columns} : Ints{1};
    p.x = drawn(rng, {p.time, p.batch, p.inputs});
    p.w = bytes(rng, {1, p.inputs, columns}, dtype, is_signed ? -128 : 0, is_signed ? 127 : 255);
    p.r = bytes(rng, {1, p.hidden, columns}, dtype, is_signed ? -128 : 0, is_signed ? 127 : 255);
    p.w_scale = positive(rng, per), p.r_scale = positive(rng, per);
    p.w_zero = bytes(rng, per, dtype, is_signed ? 0 : 120, is_signed ? 0 : 130);
    p.r_zero = bytes(rng, per, dtype, is_signed ? 0 : 120, is_signed ? 0 : 130);
    p.bias = drawn(rng, {1, 8 * p.hidden}), p.peephole = drawn(rng, {1, 3 * p.hidden});
    p.lengths = {4, is_cut ? 2 : 4, is_cut ? 3 : 4};
    if (is_cut) p.lengths[0] = 3;  // the last step holds no data
    p.clip = i % 5 == 2 ? 0.5 : 0;
    const Operand lengths = is_cut ? Operand(integers({3}, p.lengths, DType::i32)) : Operand();
    PlainLstm seen = p;
    if (is_cut) {
      Numbers data = numbers(p.x);
      std::fill(data.begin() + 3 * p.batch * p.inputs, data.end(), 0);
      seen.x = reals({p.time, p.batch, p.inputs}, data);
    }
    const std::vector<Tensor> y = run_outputs(
        "DynamicQuantizeLSTM", 1,
        {p.x, constant(p.w), constant(p.r), p.bias, lengths, none(), none(), p.peephole, p.w_scale,
         p.w_zero, p.r_scale, p.r_zero},
        {{"hidden_size", p.hidden}, {"clip", p.clip}}, {.domain = "com.microsoft", .outputs = 3});
    SCOPED_TRACE(i);
    EXPECT_EQ(y[0].type(), type_of(DType::f32, {p.time, 1, p.batch, p.hidden}));
    EXPECT_EQ(y[2].type(), type_of(DType::f32, {1, p.batch, p.hidden}));
    EXPECT_THAT(numbers(y[0]), near(seen.result()));
  }
}

// A sequence that has ended long ago takes no part in the range of the state, if its outputs are
// asked for.
TEST(OnnxDynamicQuantizeLstm, EndedSequencesHaveAStateOfZeros) {
  Rng rng(11);
  PlainLstm p = {.time = 6, .batch = 3, .inputs = 2, .hidden = 3};
  // The outputs of the first sequence are far larger than those of the others.
  p.x = drawn(rng, {6, 3, 2});
  p.w = bytes(rng, {1, 2, 12}, DType::i8, -128, 127);
  p.r = bytes(rng, {1, 3, 12}, DType::i8, -128, 127);
  p.w_scale = p.r_scale = reals({1}, {0.01});
  p.w_zero = p.r_zero = integers({1}, {0}, DType::i8);
  p.bias = drawn(rng, {1, 24}), p.peephole = reals({1, 9}, Numbers(9));
  p.lengths = {2, 6, 4};
  Numbers cell(9);
  for (size_t i = 0; i < 3; ++i) cell[i] = 9;
  const Tensor cells = reals({1, 3, 3}, cell);
  const auto run = [&](bool wants_all) {
    onnx::ModelProto model;
    model.ParseFromString(node_model("DynamicQuantizeLSTM", 1,
                                     {constant(p.x), constant(p.w), constant(p.r), constant(p.bias),
                                      constant(integers({3}, p.lengths, DType::i32)), none(),
                                      constant(cells), constant(p.peephole), constant(p.w_scale),
                                      constant(p.w_zero), constant(p.r_scale), constant(p.r_zero)},
                                     {{"hidden_size", 3}},
                                     {.domain = "com.microsoft", .outputs = 2}));
    if (!wants_all) {
      model.mutable_graph()->mutable_node(0)->set_output(0, "");
      model.mutable_graph()->mutable_output()->DeleteSubrange(0, 1);
    }
    const std::string bytes = model.SerializeAsString();
    const Model read = parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", ".").value();
    return numbers(evaluate_model(read, {}, {.numerics = Numerics::rounded}).value().back());
  };
  PlainLstm holds = p;
  holds.holds_ended = true;
  const auto last = [&](const PlainLstm& plain) {
    const Numbers all = plain.result(cell);
    Numbers y;
    for (size_t b = 0; b < 3; ++b)
      for (size_t j = 0; j < 3; ++j)
        y.push_back(all[(static_cast<size_t>(p.lengths[b]) - 1) * 9 + b * 3 + j]);
    return y;
  };
  EXPECT_THAT(run(true), near(last(p)));
  EXPECT_THAT(run(false), near(last(holds)));
  EXPECT_THAT(last(p), testing::Not(near(last(holds))));
}

TEST(OnnxDynamicQuantizeLstm, GoesBothWays) {
  Rng rng(3);
  PlainLstm p = {.time = 3, .batch = 1, .inputs = 2, .hidden = 2};
  p.x = drawn(rng, {3, 1, 2});
  p.w = bytes(rng, {1, 2, 8}, DType::i8, -128, 127),
  p.r = bytes(rng, {1, 2, 8}, DType::i8, -99, 99);
  p.w_scale = reals({1}, {0.01}), p.r_scale = reals({1}, {0.02});
  p.w_zero = p.r_zero = integers({1}, {0}, DType::i8);
  p.bias = drawn(rng, {1, 16}), p.peephole = reals({1, 6}, Numbers(6));
  p.lengths = {3};
  PlainLstm back = p;
  back.x = reals({3, 1, 2}, [&] {
    const Numbers v = numbers(p.x);
    return Numbers{v[4], v[5], v[2], v[3], v[0], v[1]};
  }());
  const auto twice = [](const Tensor& t, Ints dims) {
    Numbers all = numbers(t);
    const size_t count = all.size();
    for (size_t i = 0; i < count; ++i) all.push_back(all[i]);
    dims[0] = 2;
    return Tensor::from_reals(type_of(t.dtype(), dims), all);
  };
  const Tensor y =
      run_outputs("DynamicQuantizeLSTM", 1,
                  {p.x, twice(p.w, {1, 2, 8}), twice(p.r, {1, 2, 8}), twice(p.bias, {1, 16}),
                   none(), none(), none(), none(), twice(p.w_scale, {1}), twice(p.w_zero, {1}),
                   twice(p.r_scale, {1}), twice(p.r_zero, {1})},
                  {{"hidden_size", 2}, {"direction", "bidirectional"}},
                  {.domain = "com.microsoft", .outputs = 1})[0];
  const Numbers there = p.result(), again = back.result();
  Numbers want;
  for (size_t t = 0; t < 3; ++t) {
    want.insert(want.end(), {there[2 * t], there[2 * t + 1]});
    want.insert(want.end(), {again[2 * (2 - t)], again[2 * (2 - t) + 1]});
  }
  EXPECT_THAT(numbers(y), near(want));
}

// Backwards each sequence begins with its last step, in the first round of all.
TEST(OnnxDynamicQuantizeLstm, GoesBackwardsFromTheEndOfEachSequence) {
  Rng rng(8);
  PlainLstm p = {.time = 4, .batch = 2, .inputs = 3, .hidden = 2};
  p.x = drawn(rng, {4, 2, 3});
  p.w = bytes(rng, {1, 3, 8}, DType::i8, -99, 99), p.r = bytes(rng, {1, 2, 8}, DType::i8, -99, 99);
  p.w_scale = reals({1}, {0.01}), p.r_scale = reals({1}, {0.02});
  p.w_zero = p.r_zero = integers({1}, {0}, DType::i8);
  p.bias = drawn(rng, {1, 16}), p.peephole = reals({1, 6}, Numbers(6));
  p.lengths = {4, 2};
  const auto turned = [&](const Numbers& v, size_t width) {  // [time, batch, width]
    Numbers y = v;
    for (size_t b = 0; b < 2; ++b)
      for (size_t t = 0, length = static_cast<size_t>(p.lengths[b]); t < length; ++t)
        for (size_t i = 0; i < width; ++i)
          y[(t * 2 + b) * width + i] = v[((length - 1 - t) * 2 + b) * width + i];
    return y;
  };
  PlainLstm back = p;
  back.x = reals({4, 2, 3}, turned(numbers(p.x), 3));
  const Tensor y = run_outputs(
      "DynamicQuantizeLSTM", 1,
      {p.x, constant(p.w), constant(p.r), p.bias, integers({2}, p.lengths, DType::i32), none(),
       none(), none(), p.w_scale, p.w_zero, p.r_scale, p.r_zero},
      {{"hidden_size", 2}, {"direction", "reverse"}}, {.domain = "com.microsoft", .outputs = 1})[0];
  EXPECT_THAT(numbers(y), near(turned(back.result(), 2)));
}

TEST(OnnxDynamicQuantizeLstm, ChecksItsOperands) {
  Rng rng(3);
  const Tensor x = drawn(rng, {3, 1, 2}), w = bytes(rng, {1, 2, 8}, DType::i8, -9, 9);
  const Tensor one = reals({1}, {0.1}), zero = integers({1}, {0}, DType::i8);
  const NodeOptions contributed = {.domain = "com.microsoft"};
  const auto error = [&](const Tensor& weights, const Tensor& scale) {
    return import_error(
        "DynamicQuantizeLSTM", 1,
        {x, weights, w, none(), none(), none(), none(), none(), scale, zero, one, zero},
        {{"hidden_size", 2}}, contributed);
  };
  EXPECT_THAT(error(drawn(rng, {1, 2, 8}), one), HasSubstr("want bytes"));
  EXPECT_THAT(error(bytes(rng, {1, 3, 8}, DType::i8, -9, 9), one), HasSubstr("W is i8[1, 3, 8]"));
  EXPECT_THAT(error(w, reals({2}, {1, 1})), HasSubstr("the scale of W"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
