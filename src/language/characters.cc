#include "language/characters.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hone {
namespace {

struct CharacterRange {
  char32_t first;
  char32_t last;
  CharacterKind kind;
};
constexpr CharacterRange kRanges[] = {
#define HONE_CHARACTERS(first, last, kind) {first, last, CharacterKind::kind},
#include "language/character_kinds.def"
};

// The property White_Space of Unicode.
bool is_blank(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// Bytes of a character that begins so; 0: none does.
uint8_t length_by(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

CharacterKind kind_of(char32_t character) {
  if (is_blank(character)) return CharacterKind::blank;
  const auto* const next = std::ranges::upper_bound(kRanges, character, {}, &CharacterRange::first);
  if (next == std::begin(kRanges)) return CharacterKind::other;
  const CharacterRange& range = *std::prev(next);
  return character <= range.last ? range.kind : CharacterKind::other;
}

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const uint8_t bytes = length_by(lead);
  if (bytes == 1) return {lead, 1};
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (uint8_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes] || code >= kNoCharacter || is_surrogate) return {};
  return {code, bytes};
}

std::string utf8(char32_t c) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000)
    return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

size_t unfinished_bytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(text.size(), 3); ++back) {
    const char byte = text[text.size() - back];
    if (is_continuation(byte)) continue;
    return length_by(static_cast<unsigned char>(byte)) > back ? back : 0;
  }
  return 0;
}

}  // namespace hone
