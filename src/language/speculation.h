#pragma once

#include <memory>

#include "language/generation.h"

// Ways to guess how a text goes on.

namespace hone {

// Takes the tokens that followed the last ones where they stood before, in the prompt or in what
// was made.
class LookupDrafter final : public Drafter {
 public:
  Result<std::vector<TokenId>> draft(std::span<const TokenId> past, int64_t most,
                                     const SamplingOptions& sampling, uint64_t step) override;

 private:
  static constexpr size_t kLongest = 3;  // last tokens that are looked for, at most
};

// Takes the tokens of a smaller model, by the same numbers that are drawn.
class ModelDrafter final : public Drafter {
 public:
  // Refused: another vocabulary than that of the model whose text it guesses.
  static Result<std::unique_ptr<ModelDrafter>> make(std::unique_ptr<LanguageModel> small,
                                                    const Tokenizer& tokenizer);
  Result<std::vector<TokenId>> draft(std::span<const TokenId> past, int64_t most,
                                     const SamplingOptions& sampling, uint64_t step) override;

 private:
  static constexpr int64_t kGuesses = 4;  // each costs a step of the small model
  explicit ModelDrafter(std::unique_ptr<LanguageModel> small) : small_(std::move(small)) {}
  const std::unique_ptr<LanguageModel> small_;
};

}  // namespace hone
