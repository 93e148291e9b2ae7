#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "front/decoder/blocks.h"
#include "ir/graph.h"

// Language models as graphs: one builder for all families that read text from left to right. A
// family is a choice of numbers and of tensors; below the front end nothing knows of it.

namespace hone {

// The angles by which pairs of elements of keys and queries turn with their position.
struct RotationConfig {
  int64_t width = 0;            // elements of a head that turn; 0: none do
  bool is_interleaved = false;  // pairs are (0, 1), (2, 3), ...; else (0, w/2), (1, w/2 + 1), ...
  double base = 10000;
  double local_base = 10000;          // of layers with a window
  double scale = 1;                   // of positions, in layers without one
  double magnitude = 1;               // of cos and sin
  std::vector<double> divisors = {};  // of the frequencies, one for each pair; empty: 1
};

// How keys and values are kept: as they are, or rounded. q8: bytes, with a scale for each head of
// each token.
enum class CacheType : uint8_t { f32, f16, q8 };
std::optional<CacheType> cache_type_of(std::string_view name);

enum class Gate : uint8_t { none, silu, gelu };  // none: gelu(up), without a gate

struct DecoderConfig {
  std::string family;
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t key_width = 0;  // of a head
  int64_t value_width = 0;
  int64_t hidden = 0;           // of the feed-forward part
  int64_t context = 0;          // tokens, at most
  int64_t vocabulary = 0;       // rows of the embedding
  bool has_layer_norm = false;  // else the root mean square alone
  double epsilon = 1e-5;
  Gate gate = Gate::silu;
  bool has_fused_gate = false;  // ffn_up holds the gate, and then up
  RotationConfig rotation = {};
  bool has_positions = false;  // learned ones are added to the embedding
  double embedding_scale = 1;
  double attention_scale = 0;  // 0: 1 / sqrt(key width)
  double score_cap = 0;        // 0: none
  double logit_cap = 0;
  int64_t window = 0;         // tokens that a layer with a window sees
  int64_t window_period = 0;  // layer i has one if i % period < period - 1; 0: none; 1: all
  CacheType cache = CacheType::f32;

  bool has_window(int64_t layer) const;
  int64_t cache_bytes(int64_t tokens) const;  // of keys and values
};

// Refuses numbers that contradict one another or that no model has.
Status check(const DecoderConfig& config);

// A tensor by the name that GGUF files give it.
struct Weight {
  Tensor data;                             // reals, or u8[rows, bytes of a row] of blocks
  std::optional<BlockFormat> format = {};  // of blocks
  std::vector<int64_t> dims;               // of the numbers, outermost first
};
class DecoderWeights {
 public:
  virtual ~DecoderWeights() = default;
  virtual bool has(const std::string& name) const = 0;
  // For a tensor that is there.
  virtual Result<Weight> get(const std::string& name) const = 0;
};

// The step of a decoder over some tokens behind `position` others:
//   tokens i64[tokens], position i64[], rows i64[rows],
//   layer/I/key_cache [1, kv heads, tokens + room, key width] of the type that DecoderConfig::cache
//   says, layer/I/value_cache; of q8 each is followed by its scales, layer/I/key_scales_cache
//   f32[1, kv heads, tokens + room, 1]
//   -> logits f32[rows, vocabulary] of these rows of tokens, layer/I/key, layer/I/value
// Caches are donated, and hold the keys and values of all tokens from the first one on. A token
// reads its own keys and values rounded, too, so it does not matter which step wrote them.
Result<Graph> build_decoder(const DecoderConfig& config, const DecoderWeights& weights);

// A step of one token for each of several texts, which read the weights together:
//   tokens i64[texts], positions i64[texts], and for each layer I and each text T the caches that
//   the other step has, layer/I/text/T/key_cache [1, kv heads, 1 + room, key width], ...
//   -> logits f32[texts, vocabulary], layer/I/text/T/key, layer/I/text/T/value
// All caches have the same room.
Result<Graph> build_decoder_of_texts(const DecoderConfig& config, const DecoderWeights& weights,
                                     int64_t texts);

}  // namespace hone
