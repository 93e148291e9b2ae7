#include "front/decoder/encoder.h"

#include <cmath>

#include "front/decoder/weight_reader.h"
#include "ir/functional.h"

namespace hone {
namespace {

constexpr int64_t kMostText = 1 << 20;
constexpr std::string_view kPoolings[] = {"mean", "cls", "last"};

class EncoderBuilder {
 public:
  EncoderBuilder(const EncoderConfig& config, const DecoderWeights& weights)
      : config_(config), b_(config.family), weights_(b_, weights, config.family) {}

  Result<Graph> build() {
    size_ = Symbol::get("tokens", 1, kMostText);
    tokens_ = b_.parameter("tokens", DType::i64, {size_});
    count_ = b_.parameter("count", DType::i64, {});
    seen_ = compare("lt", iota(b_, DType::i64, {1, 1, size_, size_}, 3), count_);
    if (config_.rotation_base > 0) make_angles();
    Value x = embedded();
    for (int64_t i = 0; i < config_.layers && b_.ok(); ++i) x = layer(i, x);
    return b_.finish({pooled(x).named("embedding")});
  }

 private:
  Value norm(const std::string& name, Value x) {
    return weights_.layer_norm(name, x, config_.epsilon);
  }

  void make_angles() {
    const int64_t pairs = config_.width / config_.heads / 2;
    std::vector<double> frequencies(static_cast<size_t>(pairs));
    for (size_t i = 0; i < frequencies.size(); ++i)
      frequencies[i] =
          std::pow(config_.rotation_base, -static_cast<double>(i) / static_cast<double>(pairs));
    const Value by =
        b_.constant(Tensor::from_reals(Type::get(DType::f32, {1, pairs}), frequencies));
    const Value angles = cast(iota(b_, DType::i64, {size_, 1}, 0), DType::f32) * by;
    cosines_ = unary(Opcode::cos, angles), sines_ = unary(Opcode::sin, angles);
  }

  Value embedded() {
    Value x = weights_.rows_of("token_embd.weight", config_.vocabulary, config_.width, tokens_);
    if (config_.positions > 0) {
      const Value places = iota(b_, DType::i64, {size_}, 0) + double(config_.first_position);
      x = x + weights_.rows_of("position_embd.weight", config_.positions, config_.width, places);
    }
    if (config_.kinds > 0)
      x = x + weights_.rows_of("token_types.weight", config_.kinds, config_.width,
                               b_.full(DType::i64, {1}, 0));
    return norm("token_embd_norm", x);
  }

  // [tokens, width] -> [1, heads, tokens, width of a head]
  Value as_heads(Value x) {
    const int64_t heads = config_.heads;
    return transpose(reshape(x, {1, size_, heads, config_.width / heads}), {0, 2, 1, 3});
  }
  Value turned(Value x) {
    if (config_.rotation_base == 0) return x;
    return b_.op(Opcode::rotary_embedding, {x, cosines_, sines_}, {{"interleaved", false}});
  }

  Value attention(const std::string& at, Value x) {
    const int64_t width = config_.width;
    Value query, key, value;
    if (weights_.has(at + "attn_qkv.weight")) {
      const Value all = weights_.linear(at + "attn_qkv", x, 3 * width);
      if (!b_.ok()) return x;
      const std::vector<Value> parts = split(all, 1, 3);
      query = parts[0], key = parts[1], value = parts[2];
    } else {
      query = weights_.linear(at + "attn_q", x, width);
      key = weights_.linear(at + "attn_k", x, width);
      value = weights_.linear(at + "attn_v", x, width);
    }
    if (!b_.ok()) return x;
    const Value y = b_.op(Opcode::attention,
                          {turned(as_heads(query)), turned(as_heads(key)), as_heads(value), seen_});
    return weights_.linear(at + "attn_output", reshape(transpose(y, {0, 2, 1, 3}), {size_, width}),
                           width);
  }

  Value layer(int64_t i, Value x) {
    const Builder::Scope scope = b_.scope(fmt::format("layer/{}", i));
    const std::string at = fmt::format("blk.{}.", i);
    x = norm(at + "attn_output_norm", x + attention(at, x));
    const Value up = weights_.linear(at + "ffn_up", x, config_.hidden);
    const Value inner = config_.is_gated
                            ? silu(weights_.linear(at + "ffn_gate", x, config_.hidden)) * up
                            : gelu(up);
    return norm(at + "layer_output_norm",
                x + weights_.linear(at + "ffn_down", inner, config_.width));
  }

  Value pooled(Value x) {
    if (!b_.ok()) return x;
    Value all;
    if (config_.pooling == Pooling::mean) {
      const Value is_text = compare("lt", iota(b_, DType::i64, {size_, 1}, 0), count_);
      all =
          reduce_sum(select(is_text, x, b_.scalar(DType::f32, 0)), {0}) / cast(count_, DType::f32);
    } else {
      const Value row = config_.pooling == Pooling::cls ? b_.scalar(DType::i64, 0) : count_ - 1.0;
      all = reshape(take(x, reshape(row, {1})), {config_.width});
    }
    if (!config_.is_normalized) return all;
    constexpr double kLeastLength = 1e-12;
    return all / maximum(sqrt(reduce_sum(all * all, {0}, /*keep=*/true)), kLeastLength);
  }

  const EncoderConfig& config_;
  Builder b_;
  WeightReader weights_;
  Dim size_ = 0;
  Value tokens_, count_, seen_, cosines_, sines_;
};

}  // namespace

std::optional<Pooling> pooling_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kPoolings); ++i)
    if (kPoolings[i] == name) return static_cast<Pooling>(i);
  return std::nullopt;
}
std::string_view name(Pooling pooling) { return kPoolings[static_cast<size_t>(pooling)]; }

Status check(const EncoderConfig& config) {
  constexpr int64_t kMost = 1 << 20, kMostRows = 1 << 24, kMostLayers = 4096;
  const auto is_in = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
  if (!is_in(config.layers, kMostLayers) || !is_in(config.width, kMost) ||
      !is_in(config.heads, kMost) || !is_in(config.hidden, kMost) ||
      !is_in(config.context, kMost) || !is_in(config.vocabulary, kMostRows))
    return bad_input(
        "{} layers of width {} with {} heads, {} hidden, {} tokens of {}: no model has them",
        config.layers, config.width, config.heads, config.hidden, config.context,
        config.vocabulary);
  if (config.width % config.heads != 0)
    return bad_input("{} heads cannot share a width of {}", config.heads, config.width);
  if (config.rotation_base < 0 ||
      (config.rotation_base > 0 && config.width / config.heads % 2 != 0))
    return bad_input("heads of {} elements cannot turn in pairs", config.width / config.heads);
  if (config.positions > 0 && config.first_position + config.context > config.positions)
    return bad_input("{} tokens from position {} on are more than {} positions", config.context,
                     config.first_position, config.positions);
  return {};
}

Result<Graph> build_encoder(const EncoderConfig& config, const DecoderWeights& weights) {
  HONE_TRY(check(config));
  return EncoderBuilder(config, weights).build();
}

}  // namespace hone
