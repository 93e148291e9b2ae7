#include "cli/cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/arguments.h"

namespace hone::cli {
namespace {

// The XDG base directory specification says that a path that is not absolute counts as not set.
Result<std::filesystem::path> user_folder() {
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && *caches == '/') return std::filesystem::path(caches) / "hone";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".cache" / "hone";
  return usage_error("compiled code has no folder: neither XDG_CACHE_HOME nor HOME is set")
      .with_hint("name one with --cache");
}

}  // namespace

Result<std::unique_ptr<CompileCache>> open_cache(const Arguments& arguments) {
  if (arguments.given("cache")) return CompileCache::open(arguments.text("cache"));
  return CompileCache::open(HONE_TRY(user_folder()));
}

Status check_entries_fit(const CompileCache& cache) {
  const std::filesystem::path& folder = cache.folder();
  std::error_code failed;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return bad_input("cannot create '{}': {}", folder.native(),
                     std::error_code(errno, std::generic_category()).message());
  const std::filesystem::path probe = folder / fmt::format("probe-{}", getpid());
  HONE_TRY(write_file_atomic(probe, ""));
  std::filesystem::remove(probe, failed);
  return {};
}

}  // namespace hone::cli
