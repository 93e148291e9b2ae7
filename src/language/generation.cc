#include "language/generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "base/text.h"

namespace hone {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double rate(double tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0; }

// The prompt as it fits: its first token, which may begin the text, and its end.
std::vector<TokenId> fitting_prompt(std::span<const TokenId> prompt, int64_t context,
                                    const GenerationOptions& options) {
  std::vector<TokenId> kept(prompt.begin(), prompt.end());
  const int64_t room = std::max(context - std::min(options.max_tokens, context / 2), int64_t{1});
  if (const int64_t over = std::ssize(prompt) - room; options.drops_start && over > 0) {
    const int64_t first = room > 1 ? 1 : 0;
    kept.erase(kept.begin() + first, kept.begin() + first + over);
  }
  return kept;
}

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

Result<TextMaker> TextMaker::begin(LanguageModel& model, std::span<const TokenId> prompt,
                                   GenerationOptions options) {
  if (prompt.empty())
    return usage_error("the prompt has no token").with_hint("give at least one character");
  TextMaker made(model, std::move(options));
  made.past_ = fitting_prompt(prompt, model.context(), made.options_);
  if (std::ssize(made.past_) > model.context())
    return usage_error("the prompt has {} tokens, but the context has room for {}", prompt.size(),
                       model.context());
  made.made_.prompt_tokens = std::ssize(made.past_);
  made.made_.dropped_tokens = std::ssize(prompt) - std::ssize(made.past_);
  made.made_.reused_tokens = static_cast<int64_t>(model.keep_shared(made.past_));
  made.start_ = Clock::now();
  return made;
}

void TextMaker::give(const std::string& text) {
  made_.text += text;
  if (options_.on_text && !text.empty()) options_.on_text(text);
}

bool TextMaker::is_cancelled() const {
  return options_.cancel != nullptr && options_.cancel->cancelled();
}

Result<bool> TextMaker::end(GenerationEnd why) {
  made_.end = why;
  has_ended_ = true;
  give(stream_.finish());
  return false;
}

Result<bool> TextMaker::take(std::span<const float> logits) {
  // The embedding may have more rows than there are tokens.
  const auto real = logits.first(static_cast<size_t>(model_->tokenizer().size()));
  const TokenId token = HONE_TRY(choose_token(real, past_, options_.sampling, number()));
  if (number() == 0) {
    made_.prompt_seconds = seconds_since(start_);
    start_ = Clock::now();
  }
  if (model_->tokenizer().ends_text(token)) return end(GenerationEnd::model);
  made_.tokens.push_back(token);
  made_.log_probabilities.push_back(log_probability(real, token));
  past_.push_back(token);
  made_.decode_seconds = seconds_since(start_);
  give(stream_.add(model_->tokenizer().bytes_of(token)));
  if (stream_.is_stopped()) return end(GenerationEnd::stop);
  return is_cancelled() ? end(GenerationEnd::cancelled) : Result<bool>(true);
}

// None for the first token, which the prompt is read for.
Result<std::vector<TokenId>> TextMaker::guesses(int64_t unread) const {
  if (options_.drafter == nullptr || unread != 1 || number() == 0) return std::vector<TokenId>();
  const int64_t left = options_.max_tokens - static_cast<int64_t>(number()) - 1;
  const int64_t room = model_->context() - std::ssize(model_->tokens()) - unread;
  const int64_t most = std::min({LanguageModel::kFew - 1, left, room});
  if (most < 1) return std::vector<TokenId>();
  return options_.drafter->draft(past_, most, options_.sampling, number());
}

// The prompt is read in chunks, and then all tokens but the last one have been read.
std::optional<TokenId> TextMaker::single() const {
  if (has_ended_ || number() == 0 || options_.drafter != nullptr || is_cancelled() ||
      std::ssize(made_.tokens) >= options_.max_tokens || std::ssize(past_) > model_->context())
    return std::nullopt;
  return past_.back();
}

Result<bool> TextMaker::step() {
  if (has_ended_) return false;
  if (std::ssize(made_.tokens) >= options_.max_tokens) return end(GenerationEnd::length);
  const size_t read = model_->tokens().size();
  std::vector<TokenId> next(past_.begin() + static_cast<ptrdiff_t>(read), past_.end());
  if (std::ssize(past_) > model_->context()) return end(GenerationEnd::context);
  const std::vector<TokenId> guessed = HONE_TRY(guesses(std::ssize(next)));
  next.insert(next.end(), guessed.begin(), guessed.end());
  Result<std::vector<float>> logits = guessed.empty() ? model_->read(next) : model_->read_all(next);
  if (!logits.ok() && is_cancelled()) return end(GenerationEnd::cancelled);
  if (!logits.ok()) return std::move(logits).error();
  // Row i tells what follows the tokens up to guess i. It counts as long as these were right.
  const auto width = static_cast<size_t>(model_->config().vocabulary);
  made_.guessed_tokens += std::ssize(guessed);
  for (size_t i = 0;; ++i) {
    const bool goes_on = HONE_TRY(take(std::span<const float>(*logits).subspan(i * width, width)));
    const bool was_right = goes_on && i < guessed.size() && past_.back() == guessed[i];
    if (was_right) ++made_.right_guesses;
    if (goes_on && was_right) continue;
    // Tokens behind the first wrong guess are forgotten.
    model_->keep(read + next.size() - guessed.size() + i);
    return goes_on;
  }
}

Result<Generation> generate(LanguageModel& model, std::span<const TokenId> prompt,
                            const GenerationOptions& options) {
  TextMaker maker = HONE_TRY(TextMaker::begin(model, prompt, options));
  while (HONE_TRY(maker.step())) {
  }
  return maker.made();
}

namespace {

// Several texts with caches of their own. While it works, the model has none.
class Texts {
 public:
  Texts(LanguageModel& model, std::vector<LanguageModel::Memory> memories, bool is_apart)
      : model_(model), memories_(std::move(memories)), is_apart_(is_apart) {}

  Result<std::vector<Generation>> make(std::span<const std::vector<TokenId>> prompts,
                                       const GenerationOptions& options) {
    for (size_t i = 0; i < prompts.size(); ++i)
      texts_.push_back(
          HONE_TRY(in_turn(i, [&] { return TextMaker::begin(model_, prompts[i], options); })));
    while (HONE_TRY(step())) {
    }
    std::vector<Generation> made;
    for (const TextMaker& text : texts_) made.push_back(text.made());
    return made;
  }
  LanguageModel::Memory& first() { return memories_[0]; }

 private:
  template <class Work>
  std::invoke_result_t<const Work&> in_turn(size_t i, const Work& work) {
    model_.swap_memory(memories_[i]);
    auto done = work();
    model_.swap_memory(memories_[i]);
    return done;
  }

  // A step of all texts. False: all have ended.
  Result<bool> step() {
    std::vector<size_t> together;
    bool goes_on = false;
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (!is_apart_ && texts_[i].single())
        together.push_back(i);
      else if (HONE_TRY(in_turn(i, [&] { return texts_[i].step(); })))
        goes_on = true;
    }
    std::span<const size_t> left = together;
    for (const size_t count : LanguageModel::kTogether)
      for (; left.size() >= count; left = left.subspan(count))
        if (HONE_TRY(step_of(left.first(count)))) goes_on = true;
    for (const size_t i : left)
      if (HONE_TRY(in_turn(i, [&] { return texts_[i].step(); }))) goes_on = true;
    return goes_on;
  }

  Result<bool> step_of(std::span<const size_t> some) {
    std::vector<LanguageModel::Memory*> memories;
    std::vector<TokenId> tokens;
    for (const size_t i : some) {
      memories.push_back(&memories_[i]);
      tokens.push_back(*texts_[i].single());
    }
    const Result<std::vector<float>> logits = model_.read_together(memories, tokens);
    // Who stopped the run has stopped the texts, too: each ends when its step comes.
    const bool is_stopped = !logits.ok() && !texts_[some[0]].single();
    if (is_stopped) return true;
    if (!logits.ok()) return Error(logits.error());
    const auto width = static_cast<size_t>(model_.config().vocabulary);
    bool goes_on = false;
    for (size_t t = 0; t < some.size(); ++t) {
      const std::span<const float> own = std::span(*logits).subspan(t * width, width);
      goes_on = HONE_TRY(texts_[some[t]].take(own)) || goes_on;
    }
    return goes_on;
  }

  LanguageModel& model_;
  std::vector<LanguageModel::Memory> memories_;  // by text
  const bool is_apart_;
  std::vector<TextMaker> texts_;
};

}  // namespace

Result<std::vector<Generation>> generate_all(LanguageModel& model,
                                             std::span<const std::vector<TokenId>> prompts,
                                             const GenerationOptions& options) {
  if (prompts.empty()) return std::vector<Generation>();
  // The first text has the caches of the model itself, and leaves them to it.
  std::vector<LanguageModel::Memory> memories(1);
  std::vector<LanguageModel::Memory> others = HONE_TRY(model.new_memories(prompts.size() - 1));
  std::ranges::move(others, std::back_inserter(memories));
  model.swap_memory(memories[0]);
  Texts texts(model, std::move(memories), options.is_apart);
  Result<std::vector<Generation>> made = texts.make(prompts, options);
  model.swap_memory(texts.first());
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
