#include "cli/writable.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/temporary_files.h"
#include "cli/arguments.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

Status check_writable(const std::string& path) {
  if (path.empty() || path == "-") return {};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return usage_error("{} is a folder", path);
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, ignored))
    return usage_error("there is no folder {}", folder.string());
  return check_can_write(path);
}

Status check_writable_path(const std::string& path) {
  if (path.empty() || path == "-") return {};
  std::error_code ignored;
  fs::path place = path;
  if (!place.has_filename()) place = place.parent_path();  // a slash at the end
  if (!fs::exists(place, ignored) && fs::is_directory(folder_of(place), ignored))
    return check_can_write(place);
  while (!fs::exists(place, ignored) && place != folder_of(place)) {
    place = folder_of(place);
    if (fs::exists(place, ignored) && !fs::is_directory(place, ignored))
      return usage_error("there is no folder {}", place.string());
  }
  if (::access(place.c_str(), W_OK) != 0) return os_error("write", path, errno);
  return {};
}

Status check_outputs(const Arguments& arguments) {
  for (const Option& option : arguments.command().options) {
    if (option.take == Take::output) HONE_TRY(check_writable(arguments.text(option.name)));
    if (option.take == Take::output_path)
      HONE_TRY(check_writable_path(arguments.text(option.name)));
  }
  return {};
}

}  // namespace hone::cli
