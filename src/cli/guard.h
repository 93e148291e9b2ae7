#pragma once

#include "base/error.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace hone::cli {

class Console;

// Runs `body` and turns whatever comes out of it into an exit code: errors are printed, and a fault
// of hone is saved below `folder` as hone-crash-ID/, with the command line, the graph at hand and
// the files that the console kept.
int guarded(std::span<const std::string> words, Console& console,
            const std::filesystem::path& folder, const std::function<Status()>& body);

// One word for a shell, in quotes if it needs them.
std::string shell_quoted(std::string_view word);

}  // namespace hone::cli
