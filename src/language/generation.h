#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "language/language_model.h"
#include "language/sampling.h"

namespace hone {

// Guesses how a text goes on. Guesses change the speed alone, not the text.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // At most `most` tokens that may follow `past`; `step` is the number of the first one.
  virtual Result<std::vector<TokenId>> draft(std::span<const TokenId> past, int64_t most,
                                             const SamplingOptions& sampling, uint64_t step) = 0;
};

struct GenerationOptions {
  int64_t max_tokens = 128;
  SamplingOptions sampling = {};
  // A prompt that leaves no room for max_tokens, or for half of the context, loses tokens behind
  // its first one. Else a prompt that is longer than the context is refused.
  bool drops_start = false;
  std::vector<std::string> stops = {};  // texts that end it; they are not given
  // Texts of generate_all() read the weights one after another: each has the bits that it has
  // alone.
  bool is_apart = false;
  Drafter* drafter = nullptr;  // outlives it
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
  int64_t dropped_tokens = 0;  // of the prompt: there was no room
  int64_t reused_tokens = 0;   // of the prompt: their keys and values were there
  int64_t guessed_tokens = 0;  // by the drafter
  int64_t right_guesses = 0;
  double prompt_seconds = 0;  // up to the first token
  double decode_seconds = 0;  // for those behind it

  double prompt_rate() const;  // tokens a second; 0: too short to tell
  double decode_rate() const;
};

// A text that goes on after a prompt, step by step. Tokens that the model has read are not read
// again if the prompt begins with them. The model outlives it, and reads nothing else meanwhile.
class TextMaker {
 public:
  static Result<TextMaker> begin(LanguageModel& model, std::span<const TokenId> prompt,
                                 GenerationOptions options);
  // Makes a token, or a few that the drafter guessed. False: the text has ended.
  Result<bool> step();
  const Generation& made() const { return made_; }

  // The token that the next step reads alone; then that step is take() of its logits. Nothing: the
  // step reads more, or ends the text.
  std::optional<TokenId> single() const;
  // Goes on with the token that the logits give. False: it ends the text.
  Result<bool> take(std::span<const float> logits);

 private:
  using Clock = std::chrono::steady_clock;
  TextMaker(LanguageModel& model, GenerationOptions options)
      : model_(&model), options_(std::move(options)), stream_(options_.stops) {}

  Result<bool> end(GenerationEnd why);
  void give(const std::string& text);
  bool is_cancelled() const;
  uint64_t number() const { return made_.tokens.size(); }  // of the next token
  Result<std::vector<TokenId>> guesses(int64_t unread) const;

  LanguageModel* model_;
  GenerationOptions options_;
  TextStream stream_;
  Generation made_;
  std::vector<TokenId> past_;  // the prompt and what was made
  bool has_ended_ = false;
  Clock::time_point start_ = {};
};

// All of it.
Result<Generation> generate(LanguageModel& model, std::span<const TokenId> prompt,
                            const GenerationOptions& options);

// Several texts, each with caches of its own, step by step. The tokens of up to 8 texts are read
// together, in one pass over the weights. Their code is not that for one text, so logits may differ
// by their rounding, unless the texts are apart. Guesses are read apart, too.
Result<std::vector<Generation>> generate_all(LanguageModel& model,
                                             std::span<const std::vector<TokenId>> prompts,
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
