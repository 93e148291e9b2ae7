#include "base/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hone {
namespace {

enum : uint8_t { kBlank = 1, kLetter = 2, kDigit = 4, kNameExtra = 8, kPunct = 16 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes = {};
  auto mark = [&classes](std::string_view characters, uint8_t mask) {
    for (char c : characters) classes[static_cast<unsigned char>(c)] |= mask;
  };
  mark(" \t\r\n", kBlank);
  mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", kLetter);
  mark("0123456789", kDigit);
  mark("./-", kNameExtra);
  mark("(){}[]=:,.<>+-*/", kPunct);
  return classes;
}();

bool has(char c, int mask) { return (kClasses[static_cast<unsigned char>(c)] & mask) != 0; }

size_t skip_while(std::string_view text, size_t at, int mask) {
  while (at < text.size() && has(text[at], mask)) ++at;
  return at;
}

// Behind "12", "-0.5", "1e-05", "-inf" at `at`; `at` itself if there is no number.
size_t skip_number(std::string_view text, size_t begin) {
  size_t at = begin;
  if (at < text.size() && text[at] == '-') ++at;
  if (at > begin && text.substr(at, 3) == "inf") return at + 3;
  size_t digits = at;
  at = skip_while(text, at, kDigit);
  if (at == digits) return begin;
  // "1..64" is a range, not "1." and ".64".
  if (at + 1 < text.size() && text[at] == '.' && has(text[at + 1], kDigit)) {
    at = skip_while(text, at + 1, kDigit);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    size_t end = skip_while(text, exponent, kDigit);
    if (end > exponent) at = end;
  }
  return at;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && has(name[0], kLetter) &&
         skip_while(name, 1, kLetter | kDigit | kNameExtra) == name.size();
}

size_t Lexer::skip_blanks(size_t at) const {
  for (;;) {
    at = skip_while(source_, at, kBlank);
    if (at >= source_.size() || source_[at] != '#') return at;
    at = std::min(source_.find('\n', at), source_.size());
  }
}

size_t Lexer::skip_string(size_t at) const {
  for (++at; at < source_.size(); ++at) {
    if (source_[at] == '\\') {
      ++at;
    } else if (source_[at] == '"') {
      return at + 1;
    } else if (source_[at] == '\n') {
      break;
    }
  }
  return std::string_view::npos;
}

void Lexer::accept(TokenKind kind, size_t end) {
  token_ = {kind, source_.substr(at_, end - at_), at_};
  at_ = end;
}

void Lexer::accept_sigil(TokenKind kind) {
  size_t begin = at_ + 1;
  char c = begin < source_.size() ? source_[begin] : '\0';
  if (c == '"') {
    size_t end = skip_string(begin);
    return end == std::string_view::npos ? accept(TokenKind::bad, at_ + 1) : accept(kind, end);
  }
  size_t end = begin;
  if (has(c, kLetter)) end = skip_while(source_, begin, kLetter | kDigit | kNameExtra);
  if (has(c, kDigit) && kind == TokenKind::value) end = skip_while(source_, begin, kDigit);
  accept(end == begin ? TokenKind::bad : kind, std::max(end, at_ + 1));
}

void Lexer::next() {
  at_ = skip_blanks(at_);
  if (at_ >= source_.size()) {
    token_ = {TokenKind::end, {}, source_.size()};
    return;
  }
  char c = source_[at_];
  if (c == '%') return accept_sigil(TokenKind::value);
  if (c == '@') return accept_sigil(TokenKind::global);
  if (has(c, kLetter)) {
    return accept(TokenKind::word, skip_while(source_, at_, kLetter | kDigit));
  }
  if (size_t end = skip_number(source_, at_); end > at_) return accept(TokenKind::number, end);
  if (c == '"') {
    size_t end = skip_string(at_);
    return end == std::string_view::npos ? accept(TokenKind::bad, at_ + 1)
                                         : accept(TokenKind::string, end);
  }
  std::string_view pair = source_.substr(at_, 2);
  if (pair == "->" || pair == "..") return accept(TokenKind::punct, at_ + 2);
  accept(has(c, kPunct) ? TokenKind::punct : TokenKind::bad, at_ + 1);
}

std::string_view Lexer::take_brackets() {
  size_t begin = token_.offset;
  int64_t depth = 0;
  for (size_t at = begin; at < source_.size(); ++at) {
    char c = source_[at];
    if (c == '"') {
      at = skip_string(at);
      if (at == std::string_view::npos) break;
      --at;
    } else if (c == '{' || c == '[' || c == '(') {
      ++depth;
    } else if (c == '}' || c == ']' || c == ')') {
      if (--depth > 0) continue;
      at_ = at + 1;
      next();
      return source_.substr(begin, at + 1 - begin);
    }
  }
  return {};
}

std::vector<std::string_view> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> pieces;
  int64_t depth = 0;
  bool in_quotes = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '"') in_quotes = !in_quotes;
    if (in_quotes && c == '\\') ++at;
    if (in_quotes) continue;
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != ',' || depth > 0) continue;
    pieces.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::string line_and_column(std::string_view source, size_t offset) {
  std::string_view before = source.substr(0, offset);
  size_t line_start = before.rfind('\n');
  std::string_view line = before.substr(line_start == std::string_view::npos ? 0 : line_start + 1);
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  return fmt::format(
      "{}:{}", std::count(before.begin(), before.end(), '\n') + 1,
      static_cast<int64_t>(line.size()) - std::count_if(line.begin(), line.end(), continues) + 1);
}

}  // namespace hone
