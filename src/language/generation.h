#pragma once

#include <functional>
#include <string>
#include <vector>

#include "language/language_model.h"
#include "language/sampling.h"

namespace hone {

struct GenerationOptions {
  int64_t max_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<std::string> stops = {};  // texts that end it; they are not given
  // Gets the text while it comes, in whole characters.
  std::function<void(std::string_view)> on_text = {};
  const CancelToken* cancel = nullptr;  // ends it with the text so far
};

enum class GenerationEnd : uint8_t { model, stop, length, context, cancelled };
std::string_view name(GenerationEnd end);

struct Generation {
  std::string text;
  std::vector<TokenId> tokens;            // without the one that ended it
  std::vector<double> log_probabilities;  // of the tokens
  GenerationEnd end = GenerationEnd::length;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt: their keys and values were there
  double prompt_seconds = 0;  // up to the first token
  double decode_seconds = 0;  // for those behind it

  double prompt_rate() const;  // tokens a second; 0: too short to tell
  double decode_rate() const;
};

// Goes on after the prompt. Tokens that the model has read are not read again if the prompt begins
// with them. A prompt that is longer than the context is refused.
Result<Generation> generate(LanguageModel& model, std::span<const TokenId> prompt,
                            const GenerationOptions& options);

struct Perplexity {
  double value = 0;    // e to the mean negative logarithm of the probabilities
  int64_t scored = 0;  // tokens
  int64_t windows = 0;
};

// The text in windows of `window` tokens, each of which begins anew. The second half of each is
// scored: its tokens have at least half a window before them. A rest that is shorter is left out.
Result<Perplexity> perplexity(LanguageModel& model, std::span<const TokenId> tokens, int64_t window,
                              Progress& progress = no_progress());

}  // namespace hone
