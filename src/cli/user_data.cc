#include "cli/user_data.h"

#include <cstdlib>

namespace hone::cli {

std::optional<std::filesystem::path> user_data_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/') return std::filesystem::path(data) / "hone";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".local" / "share" / "hone";
  return std::nullopt;
}

}  // namespace hone::cli
