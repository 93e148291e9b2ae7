#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The public tests of Shardy, which lie beside the repository, if they are there.

namespace hone::tested {

// One function of a file, with the meshes of its module and the functions that it calls.
struct ShardyCase {
  std::string name;
  std::string program;                // without comments
  std::vector<std::string> expected;  // the comments that state something of it, without "// "
};

// The second function of a name is "main.2". nullopt: the files are not here.
std::optional<std::vector<ShardyCase>> shardy_cases(std::string_view file);
// The functions of all programs that check themselves on several devices, by the name of the file
// and theirs: "stablehlo_slice.parallel_slice".
std::optional<std::vector<ShardyCase>> shardy_programs();

// Each `from` in the text becomes `to`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace hone::tested
