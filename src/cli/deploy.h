#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.h"

// Writes models for other programs: compiled models, and libraries of C.

namespace hone::cli {

class Console;

// `hone compile MODEL -o FILE.honec`, or with --emit library: code for each level of instructions
// that is asked for. The graph is one, and its sizes are numbers.
Status deploy(const Arguments& arguments, const std::string& path, Console& console);

inline constexpr std::string_view kLibraryForm = "library";  // of --emit

}  // namespace hone::cli
