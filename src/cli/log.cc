#include "cli/log.h"

#include <cstdlib>
#include <filesystem>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/user_data.h"

namespace hone::cli {

Result<std::string> log_path(const Arguments& arguments) {
  if (arguments.given("log")) return arguments.text("log");
  const char* named = std::getenv("HONE_LOG");
  if (named != nullptr && *named != '\0') return std::string(named);
  if (const std::optional<std::filesystem::path> data = user_data_folder())
    return (*data / "log.db").native();
  return usage_error("there is no place for the log: none of HONE_LOG, XDG_DATA_HOME, HOME is set")
      .with_hint("name a file with --log");
}

Error not_kept(const Error& why, std::string_view hint) {
  std::string lost = fmt::format("{} of its rows are lost", salvaged.lost);
  if (salvaged.may_be_more)
    lost = salvaged.lost == 0 ? "rows may be lost that left no trace" : "at least " + lost;
  return Error(why).about("the log does not have all that was found").with_hint(hint);
}

void tell_salvaged(const Salvaged& salvaged, const std::string& path, Console& console) {
  console.note(
      "the log '{}' was damaged: {}; {} records, {} texts and {} plans are kept; the damaged file "
      "is '{}'",
      path, lost, salvaged.kept.records, salvaged.kept.texts, salvaged.kept.plans,
      salvaged.old_file);
}

Result<std::unique_ptr<Log>> open_log(const Arguments& arguments, Console& console) {
  std::unique_ptr<Log> log = HONE_TRY(Log::open(HONE_TRY(log_path(arguments))));
  if (log->salvaged()) tell_salvaged(*log->salvaged(), log->path(), console);
  return log;
}

Result<std::unique_ptr<Log>> wanted_log(const Arguments& arguments, Console& console) {
  if (arguments.given("no-log")) return std::unique_ptr<Log>();
  return open_log(arguments, console);
}

Result<std::unique_ptr<Log>> find_log(const Arguments& arguments) {
  const std::string path = HONE_TRY(log_path(arguments));
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) return std::unique_ptr<Log>();
  return Log::open(path, Log::Mode::read);
}

}  // namespace hone::cli
