#include "front/decoder/decoder.h"

#include <array>
#include <cmath>

#include "base/text.h"
#include "front/decoder/weight_reader.h"
#include "ir/functional.h"

namespace hone {
namespace {

constexpr int64_t kMostContext = 1 << 24;

struct Rotation {
  Value cosines;  // f32[tokens, pairs]
  Value sines;
};

class DecoderBuilder {
 public:
  DecoderBuilder(const DecoderConfig& config, const DecoderWeights& weights)
      : config_(config), b_(config.family), weights_(b_, weights, config.family) {}

  Result<Graph> build() {
    const Symbol tokens = Symbol::get("tokens", 1, kMostContext);
    const Symbol room = Symbol::get("room", 0, kMostContext);
    const Symbol rows = Symbol::get("rows", 1, kMostContext);
    count_ = tokens;
    places_ = count_ + Dim(room);
    tokens_ = b_.parameter("tokens", DType::i64, {count_});
    positions_ = {b_.parameter("position", DType::i64, {})};
    const Value wanted = b_.parameter("rows", DType::i64, {rows});
    zero_ = b_.scalar(DType::i64, 0);
    places_of_tokens_ = iota(b_, DType::i64, {count_}, 0) + positions_[0];
    make_tables();

    Value x = embedded();
    std::vector<Value> outputs(1);
    for (int64_t i = 0; i < config_.layers && b_.ok(); ++i) x = layer(i, x, outputs);
    outputs[0] = logits(take(x, wanted)).named("logits");
    return b_.finish(outputs);
  }

  Result<Graph> build_of_texts(int64_t texts) {
    count_ = texts;
    places_ = Dim(1) + Dim(Symbol::get("room", 0, kMostContext));
    tokens_ = b_.parameter("tokens", DType::i64, {count_});
    places_of_tokens_ = b_.parameter("positions", DType::i64, {count_});
    zero_ = b_.scalar(DType::i64, 0);
    for (int64_t t = 0; t < texts; ++t)
      positions_.push_back(reshape(slice(places_of_tokens_, 0, t, t + 1), {}));
    make_tables();

    Value x = embedded();
    std::vector<Value> outputs(1);
    for (int64_t i = 0; i < config_.layers && b_.ok(); ++i) x = layer(i, x, outputs);
    outputs[0] = logits(x).named("logits");
    return b_.finish(outputs);
  }

 private:
  bool has(const std::string& name) const { return weights_.has(name); }
  Value linear(const std::string& name, Value x, int64_t outputs) {
    return weights_.linear(name, x, outputs);
  }
  // Over the last dim.
  Value norm(const std::string& name, Value x) {
    return config_.has_layer_norm ? weights_.layer_norm(name, x, config_.epsilon)
                                  : weights_.rms_norm(name, x, config_.epsilon);
  }
  Value norm_if_there(const std::string& name, Value x) {
    return has(name + ".weight") ? norm(name, x) : x;
  }

  // ---- What all layers share -------------------------------------------------------------------

  Rotation rotation(double base, double scale, const std::vector<double>& divisors) {
    const int64_t pairs = config_.rotation.width / 2;
    std::vector<double> frequencies(static_cast<size_t>(pairs));
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(pairs);
      frequencies[i] = scale * std::pow(base, -part) / (divisors.empty() ? 1 : divisors[i]);
    }
    const Value by =
        b_.constant(Tensor::from_reals(Type::get(DType::f32, {1, pairs}), frequencies));
    const Value angles = unsqueeze(cast(places_of_tokens_, DType::f32), 1) * by;
    const double magnitude = config_.rotation.magnitude;
    Rotation made = {unary(Opcode::cos, angles), unary(Opcode::sin, angles)};
    if (magnitude != 1) made = {made.cosines * magnitude, made.sines * magnitude};
    return made;
  }

  bool has_texts() const { return positions_.size() > 1; }
  Dim tokens_of_a_text() const { return has_texts() ? Dim(1) : count_; }

  // Which keys the tokens of a text see: bool[1, 1, tokens, places].
  Value seen(bool has_window, Value position) {
    const Dims dims = {1, 1, tokens_of_a_text(), places_};
    const Value key = iota(b_, DType::i64, dims, 3);
    const Value query = iota(b_, DType::i64, dims, 2) + position;
    const Value past = compare("le", key, query);
    if (!has_window) return past;
    const Value near = compare("gt", key + static_cast<double>(config_.window), query);
    return binary(Opcode::and_, past, near);
  }

  void make_tables() {
    bool any_window = false, any_global = false;
    for (int64_t i = 0; i < config_.layers; ++i)
      (config_.has_window(i) ? any_window : any_global) = true;
    const RotationConfig& turns = config_.rotation;
    for (const Value position : positions_) {
      if (any_global) seen_[0].push_back(seen(false, position));
      if (any_window) seen_[1].push_back(seen(true, position));
    }
    if (turns.width == 0) return;
    if (any_global) rotations_[0] = rotation(turns.base, turns.scale, turns.divisors);
    if (any_window) rotations_[1] = rotation(turns.local_base, 1, turns.divisors);
  }

  Value embedded() {
    Value x = weights_.rows_of("token_embd.weight", config_.vocabulary, config_.width, tokens_);
    if (config_.embedding_scale != 1) x = x * config_.embedding_scale;
    if (config_.has_positions)
      x = x + weights_.rows_of("position_embd.weight", config_.context, config_.width,
                               places_of_tokens_);
    return x;
  }

  Value logits(Value x) {
    x = norm("output_norm", x);
    if (!b_.ok()) return x;
    const bool is_tied = !has("output.weight");
    const std::string name = is_tied ? "token_embd" : "output";
    Value y = linear(name, x, config_.vocabulary);
    const double cap = config_.logit_cap;
    return cap == 0 ? y : tanh(y / cap) * cap;
  }

  // ---- A layer --------------------------------------------------------------------------------

  // [tokens, heads * width] -> [1, heads, tokens, width]
  Value as_heads(Value x, int64_t heads, int64_t width) {
    return transpose(reshape(x, {1, count_, heads, width}), {0, 2, 1, 3});
  }

  struct Heads {
    Value query, key, value;
  };
  Heads heads_of(const std::string& at, Value x) {
    const int64_t q = config_.heads * config_.key_width, k = config_.kv_heads * config_.key_width;
    const int64_t v = config_.kv_heads * config_.value_width;
    if (!has(at + "attn_qkv.weight"))
      return {linear(at + "attn_q", x, q), linear(at + "attn_k", x, k),
              linear(at + "attn_v", x, v)};
    const Value all = linear(at + "attn_qkv", x, q + k + v);
    if (!b_.ok()) return {x, x, x};
    const std::vector<Value> parts = split(all, 1, Dims{q, k, v});
    return {parts[0], parts[1], parts[2]};
  }

  // The heads of a query or key, behind their norm, where there is one, and their turn.
  Value placed(const std::string& at, std::string_view norm, Value x, int64_t heads,
               const Rotation& rotation) {
    x = reshape(x, {count_, heads, config_.key_width});
    x = norm_if_there(fmt::format("{}{}", at, norm), x);
    x = as_heads(x, heads, config_.key_width);
    if (config_.rotation.width == 0) return x;
    return b_.op(Opcode::rotary_embedding, {x, rotation.cosines, rotation.sines},
                 {{"interleaved", config_.rotation.is_interleaved}});
  }

  // A cache with the rows of the step in their places.
  Value updated(std::string_view name, Value rows, Value position, std::vector<Value>& outputs) {
    const Value cache = b_.parameter(fmt::format("{}_cache", name), rows.dtype(),
                                     {1, config_.kv_heads, places_, rows.dim(-1)});
    const Value next = b_.op(Opcode::dynamic_update, {cache, rows, zero_, zero_, position, zero_});
    b_.donate(cache, static_cast<int>(outputs.size()));
    outputs.push_back(next.named(name));
    return next;
  }

  // The keys or values of all tokens, f32, as their cache has them.
  Value cached(std::string_view name, Value rows, Value position, std::vector<Value>& outputs) {
    if (!b_.ok() || config_.cache == CacheType::f32) return updated(name, rows, position, outputs);
    if (config_.cache == CacheType::f16)
      return cast(updated(name, cast(rows, DType::f16), position, outputs), DType::f32);
    constexpr double kMost = 127, kLeastScale = 1e-30;  // a row of zeros has a scale, too
    const Value scales =
        maximum(reduce_max(unary(Opcode::abs, rows), {-1}, /*keep=*/true) / kMost, kLeastScale);
    const Value bytes = cast(unary(Opcode::round, rows / scales), DType::i8);
    const Value numbers = cast(updated(name, bytes, position, outputs), DType::f32);
    return numbers * updated(fmt::format("{}_scales", name), scales, position, outputs);
  }

  // Attention of the tokens of one text, which are heads [1, heads, tokens, width].
  Value attended(size_t kind, size_t text, const std::array<Value, 3>& heads,
                 std::vector<Value>& outputs) {
    const Value position = positions_[text];
    const Value keys = cached("key", heads[1], position, outputs);
    const Value values = cached("value", heads[2], position, outputs);
    return b_.op(Opcode::attention, {heads[0], keys, values, seen_[kind][text]},
                 {{"scale", config_.attention_scale}, {"softcap", config_.score_cap}});
  }

  // Each text has its token and caches of its own.
  Value attended_by_text(size_t kind, const std::array<Value, 3>& heads,
                         std::vector<Value>& outputs) {
    std::vector<Value> all;
    for (size_t t = 0; t < positions_.size() && b_.ok(); ++t) {
      const Builder::Scope scope = b_.scope(fmt::format("text/{}", t));
      std::array<Value, 3> own;
      const auto at = static_cast<int64_t>(t);
      for (size_t i = 0; i < own.size(); ++i) own[i] = slice(heads[i], 2, at, at + 1);
      all.push_back(attended(kind, t, own, outputs));
    }
    return b_.ok() ? concat(all, 2) : heads[0];
  }

  Value attention(int64_t i, const std::string& at, Value x, std::vector<Value>& outputs) {
    const size_t kind = config_.has_window(i) ? 1 : 0;
    const Heads heads = heads_of(at, x);
    if (!b_.ok()) return x;
    const Value query = placed(at, "attn_q_norm", heads.query, config_.heads, rotations_[kind]);
    const Value key = placed(at, "attn_k_norm", heads.key, config_.kv_heads, rotations_[kind]);
    const Value value = as_heads(heads.value, config_.kv_heads, config_.value_width);
    const std::array<Value, 3> all = {query, key, value};
    const Value y =
        has_texts() ? attended_by_text(kind, all, outputs) : attended(kind, 0, all, outputs);
    const int64_t width = config_.heads * config_.value_width;
    return linear(at + "attn_output", reshape(transpose(y, {0, 2, 1, 3}), {count_, width}),
                  config_.width);
  }

  Value feed_forward(const std::string& at, Value x) {
    const int64_t hidden = config_.hidden;
    if (config_.gate == Gate::none)
      return linear(at + "ffn_down", gelu(linear(at + "ffn_up", x, hidden), true), config_.width);
    Value gate, up;
    if (config_.has_fused_gate) {
      const Value both = linear(at + "ffn_up", x, 2 * hidden);
      if (!b_.ok()) return x;
      const std::vector<Value> parts = split(both, 1, 2);
      gate = parts[0], up = parts[1];
    } else {
      gate = linear(at + "ffn_gate", x, hidden), up = linear(at + "ffn_up", x, hidden);
    }
    gate = config_.gate == Gate::silu ? silu(gate) : gelu(gate, true);
    return linear(at + "ffn_down", gate * up, config_.width);
  }

  Value layer(int64_t i, Value x, std::vector<Value>& outputs) {
    const Builder::Scope scope = b_.scope(fmt::format("layer/{}", i));
    const std::string at = fmt::format("blk.{}.", i);
    Value y = attention(i, at, norm(at + "attn_norm", x), outputs);
    x = x + norm_if_there(at + "post_attention_norm", y);
    y = feed_forward(at, norm(at + "ffn_norm", x));
    return x + norm_if_there(at + "post_ffw_norm", y);
  }

  const DecoderConfig& config_;
  Builder b_;
  WeightReader weights_;
  Dim count_ = 0;   // tokens of the step
  Dim places_ = 0;  // of the caches
  Value tokens_, zero_, places_of_tokens_;
  std::vector<Value> positions_;            // of the first token of each text
  std::array<std::vector<Value>, 2> seen_;  // by text; without a window, and with one
  std::array<Rotation, 2> rotations_;
};

// ---- Checks
// --------------------------------------------------------------------------------------

constexpr int64_t kMostLayers = 4096, kMostWidth = 1 << 20, kMostVocabulary = 1 << 24;

struct Bounded {
  std::string_view what;
  int64_t value;
  int64_t most;
};

}  // namespace

std::optional<CacheType> cache_type_of(std::string_view name) {
  if (name == "f32") return CacheType::f32;
  if (name == "f16") return CacheType::f16;
  if (name == "q8") return CacheType::q8;
  return std::nullopt;
}

bool DecoderConfig::has_window(int64_t layer) const {
  return window > 0 &&
         (window_period == 1 || (window_period > 1 && layer % window_period < window_period - 1));
}

int64_t DecoderConfig::cache_bytes(int64_t tokens) const {
  constexpr int64_t kScaleBytes = 4;
  const int64_t numbers = key_width + value_width;
  const int64_t bytes = cache == CacheType::f32   ? 4 * numbers
                        : cache == CacheType::f16 ? 2 * numbers
                                                  : numbers + 2 * kScaleBytes;
  return layers * kv_heads * bytes * tokens;
}

Status check(const DecoderConfig& config) {
  const Bounded all[] = {{"layers", config.layers, kMostLayers},
                         {"elements of the embedding", config.width, kMostWidth},
                         {"heads", config.heads, kMostWidth},
                         {"key heads", config.kv_heads, config.heads},
                         {"elements of a key head", config.key_width, kMostWidth},
                         {"elements of a value head", config.value_width, kMostWidth},
                         {"elements of the feed-forward part", config.hidden, kMostWidth},
                         {"tokens of the context", config.context, kMostContext},
                         {"tokens of the vocabulary", config.vocabulary, kMostVocabulary}};
  for (const Bounded& one : all)
    if (one.value < 1 || one.value > one.most)
      return bad_input("the number of {} is {}, not 1 to {}", one.what, one.value, one.most);
  if (config.heads % config.kv_heads != 0)
    return bad_input("{} heads cannot share {} key heads", config.heads, config.kv_heads);
  const RotationConfig& rotation = config.rotation;
  if (rotation.width < 0 || rotation.width > config.key_width || rotation.width % 2 != 0)
    return bad_input("{} elements of a head of {} cannot turn in pairs", rotation.width,
                     config.key_width);
  if (!rotation.divisors.empty() && std::ssize(rotation.divisors) != rotation.width / 2)
    return bad_input("{} divisors of frequencies are given for {} pairs", rotation.divisors.size(),
                     rotation.width / 2);
  return {};
}

Result<Graph> build_decoder(const DecoderConfig& config, const DecoderWeights& weights) {
  HONE_TRY(check(config));
  return DecoderBuilder(config, weights).build();
}

Result<Graph> build_decoder_of_texts(const DecoderConfig& config, const DecoderWeights& weights,
                                     int64_t texts) {
  HONE_CHECK(texts > 1, "{} texts read together", texts);
  HONE_TRY(check(config));
  return DecoderBuilder(config, weights).build_of_texts(texts);
}

}  // namespace hone
