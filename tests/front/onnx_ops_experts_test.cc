#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/rng.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Pointwise;

constexpr size_t kRows = 3, kWidth = 16, kHidden = 32, kExperts = 4;

const NodeOptions kContributed = {.domain = "com.microsoft"};

testing::Matcher<const Numbers&> near(const Numbers& expected, double error = 1e-4) {
  return Pointwise(testing::DoubleNear(error), expected);
}
Numbers drawn(Rng& rng, size_t count) {
  Numbers values;
  for (size_t i = 0; i < count; ++i) values.push_back(rng.normal());
  return values;
}

// Experts, computed row by row: only those that a row takes.
struct Mixture {
  Numbers x, router, up, up_bias, down, down_bias, gate;
  size_t k = 2;
  bool normalizes = false;
  std::function<Numbers(const Numbers&)> activation;

  static Numbers product(const Numbers& weights, const Numbers& bias, size_t expert,
                         const Numbers& x, size_t results) {
    Numbers y;
    for (size_t r = 0; r < results; ++r) {
      double sum = bias.empty() ? 0 : bias[expert * results + r];
      for (size_t i = 0; i < x.size(); ++i)
        sum += weights[(expert * results + r) * x.size() + i] * x[i];
      y.push_back(sum);
    }
    return y;
  }

  Numbers run(size_t up_results) const {
    Numbers all;
    for (size_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<std::ptrdiff_t>(row * kWidth);
      const Numbers data(x.begin() + at, x.begin() + at + kWidth);
      std::vector<std::pair<double, size_t>> shares;
      double sum = 0, taken = 0;
      for (size_t e = 0; e < kExperts; ++e) {
        shares.emplace_back(std::exp(router[row * kExperts + e]), e);
        sum += shares.back().first;
      }
      std::ranges::sort(shares, std::greater<>());
      for (size_t i = 0; i < k; ++i) taken += shares[i].first / sum;
      Numbers y(kWidth, 0);
      for (size_t i = 0; i < k; ++i) {
        const auto& [share, e] = shares[i];
        Numbers hidden = activation(product(up, up_bias, e, data, up_results));
        if (!gate.empty()) {
          const Numbers beside = product(gate, {}, e, data, kHidden);
          for (size_t h = 0; h < kHidden; ++h) hidden[h] *= beside[h];
        }
        const Numbers result = product(down, down_bias, e, hidden, kWidth);
        for (size_t w = 0; w < kWidth; ++w)
          y[w] += result[w] * share / sum / (normalizes ? taken : 1);
      }
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }
};

Numbers each(const Numbers& x, const std::function<double(double)>& f) {
  Numbers y;
  for (double v : x) y.push_back(f(v));
  return y;
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Mixture mixture(uint64_t seed, size_t up_results) {
  Rng rng(seed);
  return {.x = drawn(rng, kRows * kWidth),
          .router = drawn(rng, kRows * kExperts),
          .up = drawn(rng, kExperts * up_results * kWidth),
          .up_bias = drawn(rng, kExperts * up_results),
          .down = drawn(rng, kExperts * kWidth * kHidden),
          .down_bias = drawn(rng, kExperts * kWidth),
          .gate = {},
          .activation = {}};
}

Ints dims(std::initializer_list<size_t> sizes) {
  Ints all;
  for (size_t size : sizes) all.push_back(static_cast<int64_t>(size));
  return all;
}

Numbers run_mixture(const Mixture& m, size_t up_results, Attributes attributes) {
  attributes.emplace_back("k", static_cast<int64_t>(m.k));
  attributes.emplace_back("normalize_routing_weights", m.normalizes ? 1 : 0);
  std::vector<Operand> operands = {reals(dims({kRows, kWidth}), m.x),
                                   reals(dims({kRows, kExperts}), m.router),
                                   constant(reals(dims({kExperts, up_results, kWidth}), m.up)),
                                   constant(reals(dims({kExperts, up_results}), m.up_bias)),
                                   constant(reals(dims({kExperts, kWidth, kHidden}), m.down)),
                                   constant(reals(dims({kExperts, kWidth}), m.down_bias))};
  if (!m.gate.empty())
    operands.emplace_back(constant(reals(dims({kExperts, kHidden, kWidth}), m.gate)));
  return numbers(run_node("MoE", 1, operands, attributes, kContributed));
}

TEST(OnnxExperts, AddTheBestOfThem) {
  const std::pair<const char*, std::function<double(double)>> kinds[] = {
      {"relu", [](double v) { return std::max(v, 0.0); }},
      {"silu", [](double v) { return v * sigmoid(v); }},
      {"gelu",
       [](double v) {
         return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
       }},
      {"identity", [](double v) { return v; }}};
  uint64_t seed = 0;
  for (const auto& [name, f] : kinds)
    for (bool normalizes : {false, true})
      for (size_t k : {size_t{1}, size_t{3}}) {
        Mixture m = mixture(seed++, kHidden);
        m.k = k, m.normalizes = normalizes;
        m.activation = [&](const Numbers& x) { return each(x, f); };
        EXPECT_THAT(run_mixture(m, kHidden, {{"activation_type", name}}), near(m.run(kHidden)))
            << name << k << normalizes;
      }
}

TEST(OnnxExperts, MultiplyByAGateOfTheirOwn) {
  Mixture m = mixture(7, kHidden);
  Rng rng(8);
  m.gate = drawn(rng, kExperts * kHidden * kWidth);
  m.activation = [](const Numbers& x) { return each(x, [](double v) { return v * sigmoid(v); }); };
  EXPECT_THAT(run_mixture(m, kHidden, {{"activation_type", "silu"}}), near(m.run(kHidden), 1e-3));
}

TEST(OnnxExperts, TakeGatesAndLinearPartsFromOneProduct) {
  for (int fusion : {1, 2}) {
    Mixture m = mixture(9, 2 * kHidden);
    m.normalizes = true;
    m.activation = [&](const Numbers& x) {
      Numbers y;
      for (size_t h = 0; h < kHidden; ++h) {
        const double g = std::min(x[fusion == 1 ? 2 * h : h], 3.0);
        const double l = std::clamp(x[fusion == 1 ? 2 * h + 1 : kHidden + h], -3.0, 3.0);
        y.push_back(g * sigmoid(1.702 * g) * (l + 1));
      }
      return y;
    };
    EXPECT_THAT(run_mixture(m, 2 * kHidden,
                            {{"activation_type", "swiglu"},
                             {"swiglu_fusion", fusion},
                             {"swiglu_limit", 3.0},
                             {"activation_alpha", 1.702},
                             {"activation_beta", 1.0}}),
                near(m.run(2 * kHidden), 1e-3));
  }
}

// Numbers of a few bits, the low bits first.
Tensor in_bytes(const Ints& values, int64_t bits, Ints of) {
  Ints bytes;
  const auto count = static_cast<size_t>(8 / bits);
  for (size_t i = 0; i < values.size(); i += count) {
    int64_t byte = 0;
    for (size_t j = 0; j < count; ++j) byte |= values[i + j] << (static_cast<int64_t>(j) * bits);
    bytes.push_back(byte);
  }
  of.back() = of.back() / static_cast<int64_t>(count);
  return integers(of, bytes, DType::u8);
}

struct Quantized {
  Ints values, zeros;
  Numbers scales, reals;
};

// [experts, results, inputs] with a scale and a zero point for each block of 16 inputs, or for all.
Quantized quantized(Rng& rng, size_t results, size_t inputs, int64_t bits, bool has_blocks) {
  Quantized q;
  const size_t block = has_blocks ? 16 : inputs;
  for (size_t r = 0; r < kExperts * results; ++r)
    for (size_t i = 0; i < inputs; ++i) {
      if (i % block == 0) {
        q.scales.push_back(0.01 + 0.1 * rng.uniform());
        q.zeros.push_back(has_blocks ? rng.between(0, (int64_t{1} << bits) - 1) : 1 << (bits - 1));
      }
      q.values.push_back(rng.between(0, (int64_t{1} << bits) - 1));
      q.reals.push_back(static_cast<double>(q.values.back() - q.zeros.back()) * q.scales.back());
    }
  return q;
}

TEST(OnnxExperts, HaveWeightsOfFewBits) {
  for (int64_t bits : {2, 4, 8})
    for (bool has_blocks : {false, true}) {
      Rng rng(static_cast<uint64_t>(bits));
      Mixture m = mixture(3, kHidden);
      const Quantized up = quantized(rng, kHidden, kWidth, bits, false);
      const Quantized down = quantized(rng, kWidth, kHidden, bits, has_blocks);
      m.up = up.reals, m.down = down.reals;
      m.activation = [](const Numbers& x) {
        return each(x, [](double v) { return std::max(v, 0.0); });
      };
      const Ints per_block = has_blocks ? dims({kExperts, kWidth, 2}) : dims({kExperts, kWidth});
      const Tensor up_scales = has_blocks ? reals(dims({kExperts, kHidden, 1}), up.scales)
                                          : reals(dims({kExperts, kHidden}), up.scales);
      // Two zero points of 2 or 4 bits are the low bits of a byte.
      Ints zero_bytes;
      for (size_t i = 0; has_blocks && i < down.zeros.size(); i += 2) {
        if (bits == 8) {
          zero_bytes.push_back(down.zeros[i]);
          zero_bytes.push_back(down.zeros[i + 1]);
        } else {
          zero_bytes.push_back(down.zeros[i] | down.zeros[i + 1] << bits);
        }
      }
      std::vector<Operand> operands = {
          reals(dims({kRows, kWidth}), m.x),
          reals(dims({kRows, kExperts}), m.router),
          constant(in_bytes(up.values, bits, dims({kExperts, kHidden, kWidth}))),
          constant(up_scales),
          constant(reals(dims({kExperts, kHidden}), m.up_bias)),
          constant(in_bytes(down.values, bits, dims({kExperts, kWidth, kHidden}))),
          constant(reals(per_block, down.scales)),
          constant(reals(dims({kExperts, kWidth}), m.down_bias))};
      if (has_blocks) {
        operands.resize(12);
        const size_t bytes = zero_bytes.size() / kExperts / kWidth;
        operands.emplace_back(
            constant(integers(dims({kExperts, kWidth, bytes}), zero_bytes, DType::u8)));
      }
      Attributes attributes = {{"expert_weight_bits", bits}, {"k", 2}};
      if (has_blocks) attributes.emplace_back("block_size", 16);
      EXPECT_THAT(numbers(run_node("QMoE", 1, operands, attributes, kContributed)),
                  near(m.run(kHidden), 1e-3))
          << bits << has_blocks;
    }
}

TEST(OnnxExperts, RefuseWhatDoesNotFit) {
  const Mixture m = mixture(1, kHidden);
  const auto error = [&](Tensor up, Tensor router, const Attributes& attributes) {
    return import_error("MoE", 1,
                        {reals(dims({kRows, kWidth}), m.x), std::move(router), std::move(up),
                         none(), reals(dims({kExperts, kWidth, kHidden}), m.down)},
                        attributes, kContributed);
  };
  const Tensor router = reals(dims({kRows, kExperts}), m.router);
  const Tensor up = reals(dims({kExperts, kHidden, kWidth}), m.up);
  EXPECT_EQ(error(up, router, {}), "");
  EXPECT_THAT(error(up, router, {{"k", 5}}), HasSubstr("k is 5 of 4 experts"));
  EXPECT_THAT(error(up, router, {{"k", 0}}), HasSubstr("k is 0"));
  EXPECT_THAT(error(up, router, {{"activation_type", "wave"}}), HasSubstr("'wave'"));
  EXPECT_THAT(error(up, router, {{"use_sparse_mixer", 1}}), HasSubstr("sparse mixer"));
  EXPECT_THAT(error(up, router, {{"swiglu_fusion", 3}}), HasSubstr("swiglu_fusion is 3"));
  EXPECT_THAT(error(reals(dims({kExperts, kWidth, kHidden}), m.up), router, {}),
              HasSubstr("fc1 are"));
  EXPECT_THAT(error(up, reals(dims({2, kExperts}), Numbers(8, 0)), {}), HasSubstr("3 rows"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
