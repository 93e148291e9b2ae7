#pragma once

#include <string_view>

#include "base/error.h"

namespace hone::cli {

// The value of --budget, in seconds: "90s", "1.5m", "1h", or a number of seconds.
Result<double> parse_budget(std::string_view text);

}  // namespace hone::cli
