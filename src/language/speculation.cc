#include "language/speculation.h"

#include <algorithm>

namespace hone {

Result<std::vector<TokenId>> LookupDrafter::draft(std::span<const TokenId> past, int64_t most,
                                                  const SamplingOptions&, uint64_t) {
  for (size_t length = std::min(kLongest, past.size() - 1); length > 0; --length) {
    const std::span<const TokenId> last = past.last(length);
    // The place nearest to the end is the likeliest.
    const auto found = std::ranges::find_end(past.first(past.size() - 1), last);
    if (found.empty()) continue;
    const auto count = std::min(past.end() - found.end(), static_cast<ptrdiff_t>(most));
    return std::vector<TokenId>(found.end(), found.end() + count);
  }
  return std::vector<TokenId>();
}

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::make(std::unique_ptr<LanguageModel> small,
                                                         const Tokenizer& tokenizer) {
  const std::vector<Vocabulary::Token>&a = small->tokenizer().vocabulary().tokens,
        &b = tokenizer.vocabulary().tokens;
  if (!std::ranges::equal(a, b, {}, &Vocabulary::Token::text, &Vocabulary::Token::text))
    return bad_input("the model that drafts has another vocabulary, of {} tokens, not {}", a.size(),
                     b.size());
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(std::move(small)));
}

Result<std::vector<TokenId>> ModelDrafter::draft(std::span<const TokenId> past, int64_t most,
                                                 const SamplingOptions& sampling, uint64_t step) {
  std::vector<TokenId> all(past.begin(), past.end());
  const size_t known = all.size();
  const int64_t room = small_->context() - std::ssize(all);
  small_->keep_shared(all);
  for (int64_t count = std::min({most, kGuesses, room}); count > 0; --count) {
    const std::vector<float> logits =
        HONE_TRY(small_->read(std::span<const TokenId>(all).subspan(small_->tokens().size())));
    const auto real =
        std::span<const float>(logits).first(static_cast<size_t>(small_->tokenizer().size()));
    const TokenId token = HONE_TRY(choose_token(real, all, sampling, step + all.size() - known));
    if (small_->tokenizer().ends_text(token)) break;
    all.push_back(token);
  }
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(known));
  return all;
}

}  // namespace hone
