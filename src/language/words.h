#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone {

// How the tokenizers of BERT cut text into words: at blanks, and punctuation is a word of its own.
struct WordRules {
  bool cleans = true;             // control characters are left out
  bool splits_ideographs = true;  // each of Chinese is a word
  bool folds = true;              // case and accents are left out
};

void each_word(std::string_view text, const WordRules& rules,
               const std::function<void(const std::string&)>& take);

}  // namespace hone
