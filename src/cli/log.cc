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
  return usage_error("the log has no place: none of HONE_LOG, XDG_DATA_HOME, HOME is set")
      .with_hint("name a file with --log");
}

void tell_salvaged(const Salvaged& salvaged, const std::string& path, Console& console) {
  std::string lost = fmt::format("{} of its rows are lost", salvaged.lost);
  if (salvaged.may_be_more)
    lost = salvaged.lost == 0 ? "rows may be lost without a trace" : "at least " + lost;
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

namespace {

bool is_there(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed) && !failed;
}

}  // namespace

Result<WantedLog> wanted_log(const Arguments& arguments, Console& console) {
  WantedLog wanted;
  if (arguments.given("no-log")) return wanted;
  Result<std::unique_ptr<Log>> opened = open_log(arguments, console);
  if (opened.ok()) {
    wanted.log = *std::move(opened);
    return wanted;
  }
  // The log cannot be written, because the disk is full or the place is read-only. Work that has
  // results of its own goes on, and reads the log if it can. Two mistakes stop the work: the file
  // is not a log, or the user named a new log where it cannot be made.
  const std::string path = HONE_TRY(log_path(arguments));
  const bool exists = is_there(path);
  if (exists) {
    Result<std::unique_ptr<Log>> readable = Log::open(path, Log::Mode::read);
    if (readable.ok()) wanted.log = *std::move(readable);
  }
  const bool is_full = opened.error().code() == ErrorCode::limit;
  const bool is_new = !exists && !arguments.given("log");
  if (wanted.log == nullptr && !is_full && !is_new) return std::move(opened).error();
  console.note("results are not kept in the log: {}", opened.error().what());
  wanted.unwritten = opened.error();
  return wanted;
}

void tell_unwritten(const Error& why, WantedLog& wanted, Console& console) {
  if (wanted.unwritten) return;
  wanted.unwritten = why;
  console.note("the log lacks some results: {}", why.what());
}

Status check_named_log(const Arguments& arguments) {
  if (!arguments.given("log") || is_there(arguments.text("log"))) return {};
  return bad_input("there is no log '{}'", arguments.text("log"))
      .with_hint("without --log it is the user's own, see 'hone help log ls'");
}

Result<std::unique_ptr<Log>> find_log(const Arguments& arguments) {
  HONE_TRY(check_named_log(arguments));
  const std::string path = HONE_TRY(log_path(arguments));
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) return std::unique_ptr<Log>();
  return Log::open(path, Log::Mode::read);
}

}  // namespace hone::cli
