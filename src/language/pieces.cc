#include "language/pieces.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "language/characters.h"

namespace hone {
namespace {

struct Named {
  std::string_view name;
  PieceRules rules;
};

constexpr PieceRules kGpt2 = {};
constexpr PieceRules kLlama3 = {
    .any_case = true, .any_before = true, .digits = 3, .keeps_newlines = true};
constexpr PieceRules kQwen2 = {
    .any_case = true, .any_before = true, .digits = 1, .keeps_newlines = true};
constexpr PieceRules kStarcoder = {.lone_digits = true};
constexpr Named kNamed[] = {{"gpt-2", kGpt2},       {"llama-bpe", kLlama3},   {"llama3", kLlama3},
                            {"llama-v3", kLlama3},  {"smaug-bpe", kLlama3},   {"qwen2", kQwen2},
                            {"smollm", kStarcoder}, {"starcoder", kStarcoder}};

// A character, with its place in the text.
struct Placed {
  size_t at;
  char32_t code;
  CharacterKind kind;
};

// The end of the piece that begins at a character, by the alternatives of the expression in order.
class Cutter {
 public:
  Cutter(std::span<const Placed> text, const PieceRules& rules) : text_(text), rules_(rules) {}

  size_t end_from(size_t i) const {
    for (const auto& rule :
         {&Cutter::suffix, &Cutter::word, &Cutter::number, &Cutter::signs, &Cutter::lines})
      if (const size_t end = (this->*rule)(i); end > i) return end;
    return blanks(i);
  }

 private:
  bool is(size_t i, CharacterKind kind) const { return i < text_.size() && text_[i].kind == kind; }
  bool is_code(size_t i, char32_t code) const { return i < text_.size() && text_[i].code == code; }
  bool is_newline(size_t i) const { return is_code(i, '\n') || is_code(i, '\r'); }
  bool is_sign(size_t i) const {
    return i < text_.size() && text_[i].kind != CharacterKind::blank &&
           text_[i].kind != CharacterKind::letter && text_[i].kind != CharacterKind::number;
  }
  size_t run(size_t i, CharacterKind kind) const {
    while (is(i, kind)) ++i;
    return i;
  }
  char32_t letter(size_t i) const {
    if (i >= text_.size()) return 0;
    const char32_t code = text_[i].code;
    return rules_.any_case && code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code;
  }

  // 's 't 're 've 'm 'll 'd
  size_t suffix(size_t i) const {
    if (!is_code(i, '\'')) return i;
    const char32_t first = letter(i + 1), second = letter(i + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
    const bool is_two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                        (first == 'l' && second == 'l');
    return is_two ? i + 3 : i;
  }

  size_t word(size_t i) const {
    const bool may_begin = rules_.any_before ? i < text_.size() && !is_newline(i) &&
                                                   text_[i].kind != CharacterKind::letter &&
                                                   text_[i].kind != CharacterKind::number
                                             : is_code(i, ' ');
    const size_t begin = may_begin ? i + 1 : i;
    const size_t end = run(begin, CharacterKind::letter);
    return end > begin ? end : i;
  }

  size_t number(size_t i) const {
    const size_t begin = rules_.digits == 0 && is_code(i, ' ') ? i + 1 : i;
    const size_t end = run(begin, CharacterKind::number);
    if (end == begin) return i;
    return rules_.digits == 0 ? end : std::min(end, begin + static_cast<size_t>(rules_.digits));
  }

  size_t signs(size_t i) const {
    const size_t begin = is_code(i, ' ') ? i + 1 : i;
    size_t end = begin;
    while (is_sign(end)) ++end;
    if (end == begin) return i;
    while (rules_.keeps_newlines && is_newline(end)) ++end;
    return end;
  }

  // Blanks up to the last line break among them.
  size_t lines(size_t i) const {
    if (!rules_.keeps_newlines) return i;
    size_t end = run(i, CharacterKind::blank);
    while (end > i && !is_newline(end - 1)) --end;
    return end;
  }

  // The last of several blanks belongs to the word behind them.
  size_t blanks(size_t i) const {
    const size_t end = run(i, CharacterKind::blank);
    return end < text_.size() && end > i + 1 ? end - 1 : std::max(end, i + 1);
  }

  std::span<const Placed> text_;
  const PieceRules& rules_;
};

std::vector<Placed> characters_of(std::string_view text) {
  std::vector<Placed> found;
  for (size_t at = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    found.push_back({at, next.code, kind_of(next.code)});
    at += next.bytes;
  }
  return found;
}

}  // namespace

std::optional<PieceRules> piece_rules(std::string_view name) {
  const auto* const found = std::ranges::find(kNamed, name, &Named::name);
  if (found == std::end(kNamed)) return std::nullopt;
  return found->rules;
}

std::string_view known_piece_rules() { return "gpt-2, llama-bpe, qwen2 and smollm"; }

void each_piece(std::string_view text, const PieceRules& rules,
                const std::function<void(std::string_view)>& take) {
  const std::vector<Placed> all = characters_of(text);
  const auto place = [&](size_t i) { return i < all.size() ? all[i].at : text.size(); };
  const auto cut = [&](size_t begin, size_t end) {
    const Cutter cutter(std::span(all).subspan(begin, end - begin), rules);
    for (size_t i = begin; i < end;) {
      const size_t next = begin + cutter.end_from(i - begin);
      take(text.substr(place(i), place(next) - place(i)));
      i = next;
    }
  };
  size_t begin = 0;
  for (size_t i = 0; rules.lone_digits && i < all.size(); ++i) {
    if (all[i].kind != CharacterKind::number) continue;
    cut(begin, i);
    take(text.substr(all[i].at, place(i + 1) - all[i].at));
    begin = i + 1;
  }
  cut(begin, all.size());
}

}  // namespace hone
