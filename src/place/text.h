#pragma once

#include <string>
#include <string_view>

#include "place/problem.h"

// Problems of placement as hone's own text: docs/formats/placement.md.

namespace hone {

inline constexpr size_t kMaxPlaceText = size_t{1} << 28;  // bytes

// True if it begins like one.
bool is_place_text(std::string_view text);

std::string print(const PlaceProblem& problem);
// Inverse of print; checks the problem. `file` is for error texts, "file:line:column".
Result<PlaceProblem> parse_place_text(std::string_view text, std::string_view file);

}  // namespace hone
