#pragma once

#include <cstdint>
#include <span>

#include "language/vocabulary.h"

namespace hone {

// How the next token is chosen. The steps follow one another in this order, as in llama.cpp.
struct SamplingOptions {
  double repeat_penalty = 1;   // of the logits of recent tokens: positive ones are divided by it
  int64_t repeat_tokens = 64;  // that count as recent
  int64_t top_k = 0;           // of the best tokens; 0: all
  double top_p = 1;            // the fewest tokens whose probabilities sum to this much
  double min_p = 0;            // of the best token's probability, at least
  double temperature = 0;      // 0: the best token; of equals the one of the lowest number
  uint64_t seed = 0;
};

// An error if the model gave no number for some token. Equal seeds and steps draw alike.
Result<TokenId> choose_token(std::span<const float> logits, std::span<const TokenId> past,
                             const SamplingOptions& options, uint64_t step);

// The logarithm of the token's probability, by the logits as they are.
double log_probability(std::span<const float> logits, TokenId token);

}  // namespace hone
