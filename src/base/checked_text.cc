#include "base/checked_text.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

Result<int64_t> parse_int_in(std::string_view shown, std::string_view text, int64_t low,
                             int64_t high) {
  const Result<int64_t> number = parse_int(text);
  if (!number.ok())
    return usage_error("{}: '{}' is not an integer in {}..{}", shown, excerpt(text), low, high);
  if (*number >= low && *number <= high) return *number;
  return high == INT64_MAX ? usage_error("{}: {} is less than {}", shown, *number, low)
                           : usage_error("{}: {} is outside {}..{}", shown, *number, low, high);
}

Status check_word(std::string_view shown, std::string_view text, std::string_view words) {
  const std::vector<std::string_view> allowed = split(words, '|');
  if (std::ranges::find(allowed, text) != allowed.end()) return {};
  return usage_error("{}: '{}' is not one of {}", shown, excerpt(text), join(allowed, ", "))
      .with_hint(did_you_mean(text, allowed));
}

}  // namespace hone
