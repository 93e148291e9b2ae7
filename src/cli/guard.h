#pragma once

#include "base/error.h"
#include "cli/console.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cli {

// Runs `body` and turns whatever comes out of it into an exit code. Errors are printed, and a fault
// of hone is saved below `folder` as hone-crash-ID/, with the command line, the graph at hand and
// the files that the console kept.
int guarded(std::span<const std::string> words, Console& console,
            const std::filesystem::path& folder, const std::function<Status()>& body);

// The content of hone-crash-ID/. The same fault of the same command has the same ID.
struct Reproducer {
  std::string name;  // of the folder
  std::vector<Console::Kept> files;
};
// `folder`: where the command ran. The first file is the report, which ends with the message.
Reproducer reproducer_of(std::span<const std::string> words, const std::string& message,
                         const std::string& graph, const Console& console,
                         const std::filesystem::path& folder);
// Where it may go, best first: the folder of the command may be read-only.
std::vector<std::filesystem::path> reproducer_places(const std::filesystem::path& folder);
// The path of its folder follows.
inline constexpr std::string_view kReportHint =
    "this is a fault of hone, not yours; please report it with the folder ";

// One word for a shell, in quotes if it needs them.
std::string shell_quoted(std::string_view word);

}  // namespace hone::cli
