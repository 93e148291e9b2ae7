#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

// Tests ask an error for its code, its place and its nouns, not for its sentence, so that anybody
// may word it better.
//
//   EXPECT_THAT(parse_error("graph f"), says("1:7: ... name of the graph ... 'f'"));
//   EXPECT_THAT(read_npy(path), refuses(ErrorCode::bad_input, "a.npy ... header ... 12"));
//
// "..." stands for any text. The parts between are whole words, and follow each other. An Error is
// read as "PLACE: MESSAGE; HINT".

namespace hone::tested {

namespace detail {

inline bool is_inside_word(std::string_view text, size_t at) {
  const auto is_word = [&](size_t i) {
    return std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_';
  };
  return at > 0 && at < text.size() && is_word(at - 1) && is_word(at);
}

// Where the first place of the part ends, as whole words from `from` on; npos: nowhere.
inline size_t end_of_part(std::string_view text, std::string_view part, size_t from) {
  for (size_t at = text.find(part, from); at != text.npos; at = text.find(part, at + 1))
    if (!is_inside_word(text, at) && !is_inside_word(text, at + part.size()))
      return at + part.size();
  return text.npos;
}

}  // namespace detail

// A pattern without parts is in no text.
inline bool has_parts(std::string_view text, std::string_view pattern) {
  bool has_part = false;
  for (size_t at = 0, begin = 0; begin <= pattern.size();) {
    const size_t end = std::min(pattern.find("...", begin), pattern.size());
    const std::string_view part = trim(pattern.substr(begin, end - begin));
    begin = end + 3;
    if (part.empty()) continue;
    has_part = true;
    at = detail::end_of_part(text, part, at);
    if (at == text.npos) return false;
  }
  return has_part;
}

// Matches a text, an Error, and a Status or Result that has one.
class Says {
 public:
  using is_gtest_matcher = void;

  Says(std::optional<ErrorCode> code, std::string pattern)
      : code_(code), pattern_(std::move(pattern)) {}

  bool MatchAndExplain(std::string_view text, std::ostream* out) const {
    if (out != nullptr) *out << "which is '" << text << "'";
    return has_parts(text, pattern_);
  }
  bool MatchAndExplain(const Error& error, std::ostream* out) const {
    if (out != nullptr) *out << error_code_name(error.code()) << ", ";
    const std::string text = fmt::format("{}: {}; {}", error.where(), error.what(), error.hint());
    return MatchAndExplain(text, out) && (!code_ || error.code() == *code_);
  }
  template <class Outcome>
    requires requires(const Outcome& outcome) { outcome.error(); }
  bool MatchAndExplain(const Outcome& outcome, std::ostream* out) const {
    if (!outcome.ok()) return MatchAndExplain(outcome.error(), out);
    if (out != nullptr) *out << "a success";
    return false;
  }

  void DescribeTo(std::ostream* out) const {
    if (code_) *out << "is of the class " << error_code_name(*code_) << " and ";
    *out << "says '" << pattern_ << "'";
  }
  void DescribeNegationTo(std::ostream* out) const { *out << "not: ", DescribeTo(out); }

 private:
  std::optional<ErrorCode> code_;
  std::string pattern_;
};

inline Says says(std::string pattern) { return Says(std::nullopt, std::move(pattern)); }
inline Says refuses(ErrorCode code, std::string pattern) { return Says(code, std::move(pattern)); }

}  // namespace hone::tested
