#pragma once

#include "base/error.h"

#include <cstdint>
#include <string_view>

// Values that a user writes. `shown` is what the user calls them, as messages begin: "--batch".

namespace hone {

Result<int64_t> parse_int_in(std::string_view shown, std::string_view text, int64_t low,
                             int64_t high);

// One of `words`, which have bars between them: "tiny|full".
Status check_word(std::string_view shown, std::string_view text, std::string_view words);

}  // namespace hone
