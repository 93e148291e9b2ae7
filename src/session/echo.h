#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

// What the user or a file wrote, as messages and tables repeat it.

namespace hone {

// "x, y, z, w, v and 3 more"; each name is an excerpt.
std::string name_list(std::span<const std::string> names);

// Of values, without folders and extension: letters, digits and "._-" stay, "/" becomes ".", all
// else "_". Different for each value of the list.
std::vector<std::string> file_stems(std::span<const std::string> names);

}  // namespace hone
