#pragma once

#include "base/error.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// The views point into the text. split("", ',') is one empty piece; "a,,b" has three.
std::vector<std::string_view> split(std::string_view text, char separator);
// Pieces between runs of blanks; none is empty.
std::vector<std::string_view> split_words(std::string_view text);
// Without "\n" or "\r\n"; a last line break starts no further line.
std::vector<std::string_view> split_lines(std::string_view text);

// Without the blanks (space, \t, \r, \n) at both ends.
std::string_view trim(std::string_view text);

template <class Range>
std::string join(const Range& range, std::string_view separator) {
  return fmt::format("{}", fmt::join(range, separator));
}

// If the text starts with the prefix, cuts it off and says true.
bool consume_prefix(std::string_view& text, std::string_view prefix);

// The whole text must be the number: no blanks, no '+', decimal only.
Result<int64_t> parse_int(std::string_view text);
Result<double> parse_double(std::string_view text);  // Also "inf", "-inf", "nan".

// The text between double quotes: \" \\ \n \t \r, and \xHH for other bytes outside of printable
// ASCII. unescape(escape(s)) == s for any bytes.
std::string escape(std::string_view text);
Result<std::string> unescape(std::string_view text);
std::string quoted(std::string_view text);  // "\"" + escape(text) + "\""
// Escaped, and cut to about 60 characters: for texts from outside within errors and tables.
std::string excerpt(std::string_view text);

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
int64_t edit_distance(std::string_view a, std::string_view b);

// The candidate that `name` is probably a misspelling of; none if all are too different.
std::optional<std::string_view> closest_match(std::string_view name,
                                              std::span<const std::string_view> candidates);
// "did you mean 'conv'?" for an Error's hint, or "" if nothing is close. The range holds anything
// that converts to a string_view.
template <class Range>
std::string did_you_mean(std::string_view name, const Range& candidates) {
  std::vector<std::string_view> views;
  for (const auto& candidate : candidates) views.emplace_back(candidate);
  std::optional<std::string_view> match = closest_match(name, views);
  return match ? fmt::format("did you mean '{}'?", *match) : "";
}

// For people. Three digits or so: "25.6 M", "1.5 MiB", "12.3 ms", "4m10s".
std::string format_count(double count);
std::string format_bytes(int64_t bytes);
std::string format_seconds(double seconds);

// The shortest text that parse_double (or a float parser) reads back as the same value: "0.1",
// "1", "1e+20", "inf", "-inf", "nan".
std::string format_double(double value);
std::string format_float(float value);

}  // namespace hone
