#include "front/hlo/reader.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_lexer.h"

namespace hone::hlo {

namespace {

struct Element {
  std::string_view stablehlo, hlo;
  DType type;
};
constexpr Element kElements[] = {
    {"i1", "pred", DType::boolean},
    {"i2", "s2", DType::i2},
    {"i4", "s4", DType::i4},
    {"i8", "s8", DType::i8},
    {"i16", "s16", DType::i16},
    {"i32", "s32", DType::i32},
    {"i64", "s64", DType::i64},
    {"ui2", "u2", DType::u2},
    {"ui4", "u4", DType::u4},
    {"ui8", "u8", DType::u8},
    {"ui16", "u16", DType::u16},
    {"ui32", "u32", DType::u32},
    {"ui64", "u64", DType::u64},
    {"f16", "f16", DType::f16},
    {"bf16", "bf16", DType::bf16},
    {"f32", "f32", DType::f32},
    {"f64", "f64", DType::f64},
    {"f8E4M3FN", "f8e4m3fn", DType::f8e4m3fn},
    {"f8E5M2", "f8e5m2", DType::f8e5m2},
    {"f8E4M3FNUZ", "f8e4m3fnuz", DType::f8e4m3fnuz},
    {"f8E5M2FNUZ", "f8e5m2fnuz", DType::f8e5m2fnuz},
    {"f8E8M0FNU", "f8e8m0fnu", DType::f8e8m0},
    {"f4E2M1FN", "f4e2m1fn", DType::f4e2m1},
};

std::optional<DType> element_of(std::string_view Element::* language, std::string_view word) {
  for (const Element& each : kElements)
    if (each.*language == word) return each.type;
  return std::nullopt;
}

const Element& row_of_type(DType type) {
  for (const Element& each : kElements)
    if (each.type == type) return each;
  HONE_CHECK(false, "{} has no name in StableHLO", name(type));
}

}  // namespace

// Its limits do not matter; small ones keep the number of elements small.
Dim open_dim() {
  static const Dim dim = Symbol::get("open", 0, 1);
  return dim;
}

std::optional<DType> stablehlo_element(std::string_view word) {
  return element_of(&Element::stablehlo, word);
}

std::optional<DType> hlo_element(std::string_view word) { return element_of(&Element::hlo, word); }

std::string_view stablehlo_element_name(DType type) { return row_of_type(type).stablehlo; }
std::string_view hlo_element_name(DType type) { return row_of_type(type).hlo; }
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }

}  // namespace

std::string Program::place(size_t offset) const {
  return fmt::format("{}:{}", where, line_and_column(*source, std::min(offset, source->size())));
}

void Cursor::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else {
      return;
    }
  }
}

bool Cursor::at_end() {
  skip();
  return at_ >= text_.size();
}

char Cursor::peek() {
  skip();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Cursor::sees(std::string_view spelling) {
  skip();
  return text_.substr(at_, spelling.size()) == spelling;
}

bool Cursor::accept(std::string_view spelling) {
  if (!sees(spelling)) return false;
  at_ += spelling.size();
  return true;
}

void Cursor::expect(std::string_view spelling, std::string_view after) {
  if (!accept(spelling))
    refuse(bad_input("'{}' is missing after {}: there is {}", spelling, after, seen()));
}

bool Cursor::sees_word(std::string_view word) {
  if (!sees(word)) return false;
  const size_t end = at_ + word.size();
  return end >= text_.size() || !in_word(text_[end]);
}

bool Cursor::accept_word(std::string_view word) {
  if (!sees_word(word)) return false;
  at_ += word.size();
  return true;
}

std::string_view Cursor::word(bool dashes) {
  skip();
  const size_t begin = at_;
  if (at_ >= text_.size() || !is_letter(text_[at_])) return {};
  while (at_ < text_.size() &&
         (in_word(text_[at_]) || (dashes && text_[at_] == '-' && text_.substr(at_, 2) != "->")))
    ++at_;
  return from(begin);
}

std::string_view Cursor::need_word(std::string_view what, bool dashes) {
  const std::string_view found = word(dashes);
  if (found.empty()) refuse(bad_input("{} is missing: there is {}", what, seen()));
  return found;
}

std::string_view Cursor::quoted() {
  expect("\"", "this");
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) {
    at_ = text_.size();
    refuse(begin - 1, bad_input("the string that begins here never ends"));
  }
  const std::string_view inside = from(begin);
  ++at_;
  return inside;
}

int64_t Cursor::integer() {
  skip();
  const size_t begin = at_;
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  const Result<int64_t> value = parse_int(from(begin));
  if (value.ok()) return *value;
  at_ = begin;
  refuse(bad_input("an integer is missing: there is {}", seen()));
}

std::string_view Cursor::number() {
  skip();
  const size_t begin = at_;
  size_t end = at_;
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
  const bool starts = end < text_.size() && (is_digit(text_[end]) || text_[end] == '.' ||
                                             text_[end] == 'i' || text_[end] == 'n');
  if (!starts) return {};
  while (end < text_.size() &&
         (is_digit(text_[end]) || is_letter(text_[end]) || text_[end] == '.' ||
          ((text_[end] == '-' || text_[end] == '+') &&
           (text_[end - 1] == 'e' || text_[end - 1] == 'E'))))
    ++end;
  at_ = end;
  return from(begin);
}

std::string_view Cursor::brackets(bool angles) {
  skip();
  const size_t begin = at_;
  std::string open;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      quoted();
      continue;
    }
    // An arrow closes nothing.
    if (c == '-' && text_.substr(at_, 2) == "->") {
      at_ += 2;
      continue;
    }
    ++at_;
    if (c == '(' || c == '[' || c == '{' || (angles && c == '<')) {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>');
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
      if (open.empty()) return from(begin);
    } else if (c == ')' || c == ']' || c == '}') {
      break;
    }
  }
  refuse(begin, bad_input("the bracket that begins here is never closed"));
}

void Cursor::refuse(size_t offset, Error error) const {
  throw Refusal{std::move(error).at(program_.place(offset))};
}

std::string Cursor::seen() {
  if (at_end()) return "the end of the text";
  size_t end = at_;
  while (end < text_.size() && end - at_ < 24 && in_word(text_[end])) ++end;
  return fmt::format("'{}'", excerpt(text_.substr(at_, std::max<size_t>(end - at_, 1))));
}

Depth::Depth(int& depth, const Cursor& cursor) : depth_(depth) {
  if (depth >= kMostDepth) cursor.refuse(over_limit("brackets nest more than {} deep", kMostDepth));
  ++depth_;
}

}  // namespace hone::hlo
