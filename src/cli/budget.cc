#include "cli/budget.h"

#include <charconv>
#include <string>

namespace hone::cli {

Result<double> parse_budget(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double seconds = unit == "h" ? 3600 : unit == "m" ? 60 : 1;
  const bool has_unit = unit == "h" || unit == "m" || unit == "s" || unit.empty();
  if (error != std::errc() || !has_unit || !(number > 0) || number > 1e6)
    return usage_error("--budget {}: not a time", text).with_hint("write it as 90s, 5m or 1h");
  return number * seconds;
}

}  // namespace hone::cli
