#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

// Repeats the words of the user or a file in messages and tables.

namespace hone {

// "x, y, z, w, v and 3 more"; each name is an excerpt.
std::string name_list(std::span<const std::string> names);

// File names for values, without folders and extension: letters, digits and "._-" stay, "/" becomes
// ".", all else "_". Different for each value of the list.
std::vector<std::string> file_stems(std::span<const std::string> names);

}  // namespace hone
