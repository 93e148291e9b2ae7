#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "base/text_lexer.h"

// Plans as texts: a decision in each line, about values by name.

namespace hone {

// `read(line, number)` reads a line; numbers begin with 1. Its errors get the place.
template <class Read>
Status read_plan_lines(std::string_view text, std::string_view file, const Read& read) {
  int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (Status good = read(line, number); !good.ok())
      return std::move(good).error().at(fmt::format("{}:{}", file, number));
  }
  return {};
}

// x of %x, and "odd name" of %"odd name". `what` is the name of the thing, for an error.
inline Result<std::string> name_of_value(const Token& token, std::string_view what) {
  if (token.kind != TokenKind::value || token.text.size() < 2)
    return bad_input("'{}' is no {}", excerpt(token.text), what)
        .with_hint(fmt::format("{}s are written with %, as in %x", what));
  if (token.text[1] != '"') return std::string(token.text.substr(1));
  return unescape(token.text.substr(2, token.text.size() - 3));
}

}  // namespace hone
