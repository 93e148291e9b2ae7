#pragma once

#include <string>
#include <string_view>

namespace hone {

// The name of a mesh's axis as texts have it: as it is if it is a plain one, else in quotes. Plain
// are letters, digits and _ that mean nothing else in a sharding.
std::string axis_text(std::string_view name);

}  // namespace hone
