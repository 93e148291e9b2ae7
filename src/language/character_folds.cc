#include "language/character_folds.h"

#include <algorithm>
#include <iterator>

namespace hone {
namespace {

struct CodeRange {
  char32_t first;
  char32_t last;
};
constexpr CodeRange kPunctuation[] = {
#define HONE_PUNCTUATION(first, last) {first, last},
#define HONE_ACCENT(...)
#define HONE_FOLD(...)
#define HONE_LONG_FOLD(...)
#include "language/character_folds.def"
};
constexpr CodeRange kAccents[] = {
#define HONE_PUNCTUATION(...)
#define HONE_ACCENT(first, last) {first, last},
#define HONE_FOLD(...)
#define HONE_LONG_FOLD(...)
#include "language/character_folds.def"
};

struct FoldRun {
  char32_t first;
  uint32_t count;
  uint32_t step;
  char32_t to;
  uint32_t to_step;
};
constexpr FoldRun kFolds[] = {
#define HONE_PUNCTUATION(...)
#define HONE_ACCENT(...)
#define HONE_FOLD(first, count, step, to, to_step) {first, count, step, to, to_step},
#define HONE_LONG_FOLD(...)
#include "language/character_folds.def"
};

struct LongFold {
  char32_t character;
  char32_t to[3];
};
constexpr LongFold kLongFolds[] = {
#define HONE_PUNCTUATION(...)
#define HONE_ACCENT(...)
#define HONE_FOLD(...)
#define HONE_LONG_FOLD(character, a, b, c) {character, {a, b, c}},
#include "language/character_folds.def"
};

// The ranges of the library tokenizers: the last but one begins 0x100 late.
constexpr CodeRange kIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                     {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                     {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
// General categories Cc and Cf, without tags.
constexpr CodeRange kControls[] = {
    {0x0, 0x1F},        {0x7F, 0x9F},      {0xAD, 0xAD},     {0x600, 0x605},   {0x61C, 0x61C},
    {0x6DD, 0x6DD},     {0x70F, 0x70F},    {0x180E, 0x180E}, {0x200B, 0x200F}, {0x202A, 0x202E},
    {0x2060, 0x2064},   {0x2066, 0x206F},  {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0x110BD, 0x110BD},
    {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}};

template <size_t size>
bool is_in(const CodeRange (&ranges)[size], char32_t c) {
  const auto* const next = std::ranges::upper_bound(ranges, c, {}, &CodeRange::first);
  return next != std::begin(ranges) && c <= std::prev(next)->last;
}

// A syllable of Hangul as its two or three letters, by the formula of Unicode.
std::u32string hangul_letters(char32_t c) {
  constexpr char32_t kVowels = 21, kEnds = 28;
  const char32_t at = c - 0xAC00, end = at % kEnds;
  std::u32string letters = {0x1100 + at / kEnds / kVowels, 0x1161 + at / kEnds % kVowels};
  if (end > 0) letters += static_cast<char32_t>(0x11A7 + end);
  return letters;
}

}  // namespace

bool is_punctuation(char32_t c) {
  const bool is_sign = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
                       (c >= 123 && c <= 126);
  return is_sign || is_in(kPunctuation, c);
}
bool is_accent(char32_t c) { return is_in(kAccents, c); }
bool is_ideograph(char32_t c) { return is_in(kIdeographs, c); }
bool is_control(char32_t c) { return is_in(kControls, c); }

std::u32string folded(char32_t c) {
  if (is_accent(c)) return {};
  if (c >= 0xAC00 && c <= 0xD7A3) return hangul_letters(c);
  const auto* const exact = std::ranges::lower_bound(kLongFolds, c, {}, &LongFold::character);
  if (exact != std::end(kLongFolds) && exact->character == c) {
    std::u32string all(exact->to, exact->to + 3);
    std::erase(all, U'\0');
    return all;
  }
  const auto* const next = std::ranges::upper_bound(kFolds, c, {}, &FoldRun::first);
  if (next == std::begin(kFolds)) return {c};
  const FoldRun& run = *std::prev(next);
  const char32_t distance = c - run.first;
  if (distance % run.step == 0 && distance / run.step < run.count)
    return {run.to + distance / run.step * run.to_step};
  return {c};
}

}  // namespace hone
