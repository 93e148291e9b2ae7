#include "cli/cache.h"

#include <cstdlib>
#include <filesystem>

#include "cli/arguments.h"

namespace hone::cli {
namespace {

// As the XDG base directory specification says: what is no absolute path counts as not set.
Result<std::filesystem::path> user_folder() {
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && *caches == '/') return std::filesystem::path(caches) / "hone";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".cache" / "hone";
  return usage_error(
             "there is no folder for what is compiled: neither XDG_CACHE_HOME nor HOME is set")
      .with_hint("name one with --cache");
}

}  // namespace

Result<std::unique_ptr<CompileCache>> open_cache(const Arguments& arguments) {
  if (arguments.given("cache")) return CompileCache::open(arguments.text("cache"));
  return CompileCache::open(HONE_TRY(user_folder()));
}

}  // namespace hone::cli
