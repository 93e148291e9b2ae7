#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "language/vocabulary.h"

namespace hone {

// Sentence pieces by probability: a text is cut into the pieces whose scores sum to the most. The
// vocabulary is given again to each call, for it may move.
class Unigram {
 public:
  Unigram() = default;
  // Refused: pieces that are longer than kLongestPiece, and scores that are no numbers.
  static Result<Unigram> make(const Vocabulary& vocabulary);
  static constexpr size_t kLongestPiece = 1024;  // bytes

  // Calls `take` for each part of the text in order: a piece and its token, or a character without
  // one, and -1. Among equal sums the one whose last piece is longer counts.
  void each(std::string_view text, const Vocabulary& vocabulary,
            const std::function<void(std::string_view, TokenId)>& take) const;

 private:
  std::vector<TokenId> sorted_;  // by the bytes of their texts
  double unknown_score_ = 0;     // of a character without a token
};

}  // namespace hone
