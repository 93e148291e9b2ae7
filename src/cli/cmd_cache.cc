#include <chrono>
#include <filesystem>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/cache.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace hone::cli {
namespace {

std::string age(std::filesystem::file_time_type time) {
  const auto now = std::filesystem::file_time_type::clock::now();
  const double seconds = std::chrono::duration<double>(now - time).count();
  return format_seconds(std::max(seconds, 0.0));
}

// One that is named is there; the user's own may be yet to come.
Result<std::unique_ptr<CompileCache>> find_cache(const Arguments& arguments) {
  std::error_code failed;
  if (arguments.given("cache") && !std::filesystem::exists(arguments.text("cache"), failed))
    return bad_input("there is no folder '{}'", arguments.text("cache"));
  return open_cache(arguments);
}

}  // namespace

Status cmd_cache_ls(const Arguments& arguments, Console& console) {
  const std::unique_ptr<CompileCache> cache = HONE_TRY(find_cache(arguments));
  TextTable table("lrrl", {"entry", "size", "unused for", "what"});
  int64_t entries = 0, bytes = 0;
  for (const CompileCache::Entry& entry : cache->list()) {
    table.add_row({entry.name, format_bytes(entry.bytes), age(entry.last_use),
                   entry.title.empty() ? "" : excerpt(entry.title)});
    ++entries;
    bytes += entry.bytes;
  }
  if (!table.empty()) console.write(table.to_string());
  console.note("{} entries, {} in {}", entries, format_bytes(bytes), cache->folder().native());
  return {};
}

Status cmd_cache_verify(const Arguments& arguments, Console& console) {
  const std::unique_ptr<CompileCache> cache = HONE_TRY(find_cache(arguments));
  const CompileCache::Verified verified = cache->verify();
  for (const CompileCache::Damage& damage : verified.removed)
    console.print("removed {}: {}\n", damage.name, damage.reason);
  console.note("{} entries in {} are good", verified.good, cache->folder().native());
  if (verified.removed.empty()) return {};
  return check_failed("{} entries were damaged", verified.removed.size());
}

Status cmd_cache_gc(const Arguments& arguments, Console& console) {
  const std::unique_ptr<CompileCache> cache = HONE_TRY(find_cache(arguments));
  const CompileCache::Collected collected = cache->collect(arguments.integer("limit") << 20);
  console.note("removed {} files, kept {} entries, {} in {}", collected.removed, collected.kept,
               format_bytes(collected.kept_bytes), cache->folder().native());
  return {};
}

}  // namespace hone::cli
