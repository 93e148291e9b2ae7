#include "language/generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double rate(double tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0; }

// Keeps what the prompt shares with what was read, but reads one token again for its logits.
size_t keep_shared(LanguageModel& model, std::span<const TokenId> prompt) {
  const std::span<const TokenId> known = model.tokens();
  const auto shared = std::ranges::mismatch(known, prompt).in1 - known.begin();
  const size_t kept = std::min(static_cast<size_t>(shared), prompt.size() - 1);
  model.keep(kept);
  return kept;
}

bool is_cancelled(const GenerationOptions& options) {
  return options.cancel != nullptr && options.cancel->cancelled();
}

// The text of a generation while it comes.
class Writer {
 public:
  Writer(Generation& made, const GenerationOptions& options)
      : made_(made), options_(options), stream_(options.stops) {}

  // False: a text that ends the generation has come.
  bool add(std::string_view bytes) {
    give(stream_.add(bytes));
    return !stream_.is_stopped();
  }
  void finish() { give(stream_.finish()); }

 private:
  void give(const std::string& text) {
    made_.text += text;
    if (options_.on_text && !text.empty()) options_.on_text(text);
  }

  Generation& made_;
  const GenerationOptions& options_;
  TextStream stream_;
};

}  // namespace

std::string_view name(GenerationEnd end) {
  constexpr std::string_view kNames[] = {"the model ended the text", "a stop was met",
                                         "as many tokens as asked for", "the context is full",
                                         "interrupted"};
  return kNames[static_cast<size_t>(end)];
}

double Generation::prompt_rate() const {
  return rate(static_cast<double>(prompt_tokens - reused_tokens), prompt_seconds);
}
double Generation::decode_rate() const {
  return rate(static_cast<double>(tokens.size()) - 1, decode_seconds);
}

Result<Generation> generate(LanguageModel& model, std::span<const TokenId> prompt,
                            const GenerationOptions& options) {
  if (prompt.empty())
    return usage_error("the prompt has no token").with_hint("give at least one character");
  if (std::ssize(prompt) > model.context())
    return usage_error("the prompt has {} tokens, but the context has room for {}", prompt.size(),
                       model.context());
  Generation made;
  made.prompt_tokens = std::ssize(prompt);
  made.reused_tokens = static_cast<int64_t>(keep_shared(model, prompt));
  Writer writer(made, options);
  std::vector<TokenId> past(prompt.begin(), prompt.end());

  Clock::time_point start = Clock::now();
  std::span<const TokenId> next = prompt.subspan(static_cast<size_t>(made.reused_tokens));
  for (int64_t step = 0; step < options.max_tokens; ++step) {
    if (std::ssize(model.tokens()) + std::ssize(next) > model.context()) {
      made.end = GenerationEnd::context;
      break;
    }
    Result<std::vector<float>> logits = model.read(next);
    if (!logits.ok() && is_cancelled(options)) {
      made.end = GenerationEnd::cancelled;
      break;
    }
    if (!logits.ok()) return std::move(logits).error();
    // The embedding may have more rows than there are tokens.
    const auto real =
        std::span<const float>(*logits).first(static_cast<size_t>(model.tokenizer().size()));
    const TokenId token =
        HONE_TRY(choose_token(real, past, options.sampling, static_cast<uint64_t>(step)));
    if (step == 0) {
      made.prompt_seconds = seconds_since(start);
      start = Clock::now();
    }
    if (model.tokenizer().ends_text(token)) {
      made.end = GenerationEnd::model;
      break;
    }
    made.tokens.push_back(token);
    made.log_probabilities.push_back(log_probability(real, token));
    past.push_back(token);
    made.decode_seconds = seconds_since(start);
    if (!writer.add(model.tokenizer().bytes_of(token))) {
      made.end = GenerationEnd::stop;
      break;
    }
    if (is_cancelled(options)) {
      made.end = GenerationEnd::cancelled;
      break;
    }
    next = std::span<const TokenId>(past).last(1);
  }
  writer.finish();
  return made;
}

Result<Perplexity> perplexity(LanguageModel& model, std::span<const TokenId> tokens, int64_t window,
                              Progress& progress) {
  if (window < 4 || window > model.context())
    return usage_error("a window of {} tokens is asked for; 4 to {} are possible", window,
                       model.context());
  const int64_t windows = std::ssize(tokens) / window;
  if (windows == 0)
    return usage_error("the text has {} tokens, less than a window of {}", tokens.size(), window)
        .with_hint("choose a smaller window or a longer text");
  const Vocabulary& vocabulary = model.tokenizer().vocabulary();
  const auto width = static_cast<size_t>(model.config().vocabulary);
  const auto known = static_cast<size_t>(model.tokenizer().size());
  Perplexity found = {.windows = windows};
  double sum = 0;
  progress.start(windows, "windows");
  for (int64_t w = 0; w < windows; ++w) {
    std::vector<TokenId> part(tokens.begin() + w * window, tokens.begin() + (w + 1) * window);
    if (vocabulary.adds_begin && vocabulary.begin) part[0] = *vocabulary.begin;
    model.keep(0);
    const std::vector<float> logits = HONE_TRY(model.read_all(part));
    for (size_t i = part.size() / 2; i + 1 < part.size(); ++i) {
      sum -= log_probability(std::span(logits).subspan(i * width, known), part[i + 1]);
      ++found.scored;
    }
    progress.advance();
  }
  progress.finish();
  found.value = std::exp(sum / static_cast<double>(found.scored));
  return found;
}

}  // namespace hone
