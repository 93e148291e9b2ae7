#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "front/decoder/decoder.h"

// Models that read a text in both directions and give it a vector: the family of BERT.

namespace hone {

// Which vector stands for a text: the mean of those of its tokens, or that of the first or last
// one.
enum class Pooling : uint8_t { mean, cls, last };
std::optional<Pooling> pooling_of(std::string_view name);
std::string_view name(Pooling pooling);

struct EncoderConfig {
  std::string family;
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t hidden = 0;      // of the feed-forward part
  int64_t context = 0;     // tokens, at most
  int64_t vocabulary = 0;  // rows of the embedding
  double epsilon = 1e-12;
  int64_t positions = 0;       // learned ones, rows of their table; 0: none
  int64_t first_position = 0;  // of the first token
  int64_t kinds = 0;           // rows of the table of token types; 0: none. All tokens have type 0
  double rotation_base = 0;    // of the angles by which keys and queries turn; 0: they do not
  bool is_gated = false;       // down(silu(gate) * up); else down(gelu(up))
  Pooling pooling = Pooling::mean;
  bool is_normalized = true;  // the vector has the length 1
};

// Refuses numbers that contradict one another or that no model has.
Status check(const EncoderConfig& config);

// tokens i64[tokens], count i64[] -> embedding f32[width]. Tokens from `count` on fill up the text;
// nothing depends on them. Tensors have the names of GGUF files.
Result<Graph> build_encoder(const EncoderConfig& config, const DecoderWeights& weights);

}  // namespace hone
