#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Characters of UTF-8 text, as tokenizers tell them apart.

namespace hone {

enum class CharacterKind : uint8_t { other, letter, number, mark, blank };

CharacterKind kind_of(char32_t character);

// A byte that begins no character of UTF-8 counts as one of this code. Its kind is `other`, and the
// byte itself is kept.
inline constexpr char32_t kNoCharacter = 0x110000;

struct Character {
  char32_t code = kNoCharacter;
  uint8_t bytes = 1;
};
// The first one of a text that is not empty. Overlong forms, surrogates and codes above U+10FFFF
// are no characters.
Character first_character(std::string_view text);

std::string utf8(char32_t character);

// The number of bytes at the end of the text that may be the beginning of a character: 0 to 3.
size_t unfinished_bytes(std::string_view text);

}  // namespace hone
