#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

// True if the bytes begin as those of gzip do.
bool is_gzip(std::string_view bytes);

// Unpacks the bytes, of one member of gzip or several behind each other. Checks the sums.
// ErrorCode::limit if it is longer than `limit` bytes. The name is for error texts.
Result<std::string> gunzip(std::string_view bytes, std::string_view name, int64_t limit);

// One member, without a name and a time: the same text gives the same bytes.
std::string gzip(std::string_view text);

}  // namespace hone
