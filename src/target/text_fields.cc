#include "target/text_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/checked_math.h"
#include "base/text_lexer.h"

namespace hone {
namespace {

// Powers of 1024 by their place; the first entry is 1.
constexpr std::string_view kBytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};

bool is_byte_unit(std::string_view word) {
  return std::find(std::begin(kBytes), std::end(kBytes), word) != std::end(kBytes);
}

// The number times ten to the exponent, rounded once.
Result<double> moved(std::string_view number, int exponent) {
  const size_t e = number.find_first_of("eE");
  if (e == std::string_view::npos) return parse_double(fmt::format("{}e{}", number, exponent));
  const int64_t stated = HONE_TRY(parse_int(number.substr(e + 1)));
  const std::optional<int64_t> sum = checked_add(stated, exponent);
  if (!sum) return bad_input("'{}' is outside of the range of f64", excerpt(number));
  return parse_double(fmt::format("{}e{}", number.substr(0, e), *sum));
}

std::string_view base_unit(std::span<const Unit> units) {
  for (const Unit& each : units)
    if (each.exponent == 0) return each.name;
  return "";
}

}  // namespace

// ---- Units -------------------------------------------------------------------------------------

// The decimal point is moved in the shortest decimal representation, so that reading moves it back
// to exactly the same value.
std::string with_unit(double value, const Unit& unit) {
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const size_t sign = text[e + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + e + sign, end, exponent);
  const int point = value == 0 ? 1 : exponent - unit.exponent + 1;  // digits before the point
  const int count = static_cast<int>(digits.size());
  if (point < -3 || point > 15) {
    if (count > 1) digits.insert(1, ".");
    return fmt::format("{}e{} {}", digits, point - 1, unit.name);
  }
  if (point <= 0)
    digits = fmt::format("0.{:0>{}}", digits, count - point);
  else if (point >= count)
    digits.append(static_cast<size_t>(point - count), '0');
  else
    digits.insert(static_cast<size_t>(point), ".");
  return fmt::format("{} {}", digits, unit.name);
}

std::string bytes_text(int64_t bytes) {
  size_t unit = 0;
  for (; bytes % 1024 == 0 && bytes > 0 && unit + 1 < std::size(kBytes); ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kBytes[unit]);
}

// ---- Words -------------------------------------------------------------------------------------

void FieldReader::next() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  offset_ = at_;
  if (at_ < text_.size()) at_ = end_of_word();
  word_ = text_.substr(offset_, at_ - offset_);
}

size_t FieldReader::end_of_word() const {
  constexpr std::string_view single = "=+,{}\n";
  if (single.find(text_[at_]) != std::string_view::npos) return at_ + 1;
  if (text_[at_] == '"') return end_of_string();
  return std::min(text_.find_first_of(" \t\r\n#\"=+,{}", at_), text_.size());
}

size_t FieldReader::end_of_string() const {
  size_t at = at_ + 1;
  for (; at < text_.size() && text_[at] != '\n'; ++at) {
    if (text_[at] == '"') return at + 1;
    if (text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] != '\n') ++at;
  }
  return at;
}

void FieldReader::skip_empty_lines() {
  while (peek() == "\n") take();
}

Status FieldReader::end_of_line() {
  if (peek() != "\n") return expected("the end of the line");
  skip_empty_lines();
  return {};
}

Status FieldReader::expect(std::string_view word) {
  if (peek() != word) return expected(fmt::format("'{}'", word));
  take();
  return {};
}

Error FieldReader::expected(std::string_view what) const {
  const std::string_view word = peek();
  const std::string found = word.empty()   ? "the end of the text"
                            : word == "\n" ? "the end of the line"
                                           : fmt::format("'{}'", excerpt(word));
  return at(offset(), bad_input("expected {}, found {}", what, found));
}

Error FieldReader::at(size_t offset, Error error) const {
  return std::move(error).within(fmt::format("{}:{}", file_, line_and_column(text_, offset)));
}

// ---- Values ------------------------------------------------------------------------------------

Result<std::string> FieldReader::string(std::string_view what) {
  const std::string_view word = peek();
  if (word.size() < 2 || word.front() != '"' || word.back() != '"') return expected(what);
  Result<std::string> text = unescape(word.substr(1, word.size() - 2));
  if (!text.ok()) return at(offset(), std::move(text).error());
  take();
  return text;
}

Result<int64_t> FieldReader::integer(int64_t least, int64_t most) {
  const size_t place = offset();
  Result<int64_t> value = parse_int(peek());
  if (!value.ok()) return at(place, std::move(value).error());
  if (*value < least || *value > most)
    return at(place, bad_input("{} is outside of {}..{}", *value, least, most));
  take();
  return value;
}

Result<int64_t> FieldReader::bytes(int64_t most) {
  const size_t place = offset();
  int64_t bytes = HONE_TRY(integer(1, most));
  for (std::string_view unit : kBytes) {
    if (bytes > most) break;
    if (peek() == unit) {
      take();
      return bytes;
    }
    bytes *= 1024;  // at most 2^60
  }
  if (bytes > most && is_byte_unit(peek()))
    return at(place, bad_input("the size is above {} bytes", most));
  return expected(fmt::format("one of {}", join(kBytes, ", ")));
}

Result<double> FieldReader::quantity(std::span<const Unit> units, double least, double most) {
  const size_t place = offset();
  const std::string_view number = take();
  const std::string_view word = peek();
  const Unit* unit = nullptr;
  for (const Unit& each : units)
    if (each.name == word) unit = &each;
  Result<double> plain = parse_double(number);
  if (!plain.ok()) return at(place, std::move(plain).error());
  if (!std::isfinite(*plain)) return at(place, bad_input("the number must be finite"));
  if (unit == nullptr) {
    std::vector<std::string_view> all;
    for (const Unit& each : units) all.push_back(each.name);
    return expected(fmt::format("one of {}", join(all, ", ")));
  }
  Result<double> value = moved(number, unit->exponent);
  if (!value.ok()) return at(place, std::move(value).error());
  if (!(*value >= least && *value <= most))
    return at(place, bad_input("{} {} is outside of {} to {} {}", number, word, least, most,
                               base_unit(units)));
  take();
  return value;
}

Result<std::string> FieldReader::plain_name(std::string_view what) {
  if (!is_plain_name(peek())) return expected(what);
  return std::string(take());
}

}  // namespace hone
