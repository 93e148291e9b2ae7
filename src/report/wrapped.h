#pragma once

#include <span>
#include <string>

namespace hone {

// Parts with commas between them, on lines of 100 columns; the first part stands behind `first`,
// the other lines begin with that many blanks.
std::string wrapped(std::string first, std::span<const std::string> parts, size_t indent);

}  // namespace hone
