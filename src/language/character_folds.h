#pragma once

#include <string>

// Single characters, as the tokenizers of BERT take them.

namespace hone {

bool is_punctuation(char32_t character);  // general category P, and all signs of ASCII
bool is_accent(char32_t character);       // general category Mn
bool is_ideograph(char32_t character);    // of Chinese: a word of its own
bool is_control(char32_t character);      // of ASCII and Latin-1, and marks of direction and format

// The character taken apart, without its accents, in lower case.
std::u32string folded(char32_t character);

}  // namespace hone
