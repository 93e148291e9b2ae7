#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/temporary_files.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/log.h"
#include "cli/source.h"
#include "log/exchange.h"
#include "log/hash_text.h"
#include "report/log_text.h"

namespace hone::cli {
namespace {

Result<std::optional<uint64_t>> given_hash(const Arguments& arguments, std::string_view option) {
  if (!arguments.given(option)) return std::optional<uint64_t>();
  const std::string text = arguments.text(option);
  const std::optional<uint64_t> hash = parse_hash(text);
  if (!hash)
    return usage_error("--{}: '{}' is not a hash", option, excerpt(text))
        .with_hint("it is 0x and 16 digits, as 'hone log ls' prints it");
  return hash;
}

Result<Query> given_query(const Arguments& arguments) {
  Query query;
  if (arguments.given("kind")) query.kind = arguments.text("kind");
  if (arguments.given("by")) query.version = arguments.text("by");
  query.subject = HONE_TRY(given_hash(arguments, "subject"));
  query.target = HONE_TRY(given_hash(arguments, "on"));
  return query;
}

// The log of a command that has nothing to say without one.
Result<std::unique_ptr<Log>> need_log(const Arguments& arguments) {
  std::unique_ptr<Log> log = HONE_TRY(find_log(arguments));
  if (log == nullptr)
    return bad_input("there is no log '{}'", HONE_TRY(log_path(arguments)))
        .with_hint("--log names another one");
  return log;
}

void tell_counts(const LogCounts& counts, const std::string& path, Console& console) {
  console.note("{} records, {} texts, {} plans in {}", counts.records, counts.texts, counts.plans,
               path);
}

}  // namespace

// ---- Looking ------------------------------------------------------------------------------------

Status cmd_log_ls(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  const Query query = HONE_TRY(given_query(arguments));
  const std::unique_ptr<Log> log = HONE_TRY(find_log(arguments));
  std::vector<LogGroup> groups;
  LogCounts counts;
  if (log != nullptr) {
    groups = HONE_TRY(log->groups(query));
    counts = HONE_TRY(log->counts());
  }
  const std::string data = json.empty() ? "" : log_survey_json(counts, groups);
  if (json == "-")
    console.write(data);
  else if (!json.empty())
    HONE_TRY(write_file_atomic(json, data));
  if (json != "-" && log != nullptr) console.write(HONE_TRY(log_survey(*log, groups)));
  tell_counts(counts, HONE_TRY(log_path(arguments)), console);
  return {};
}

namespace {

Status show_record(const Log& log, int64_t id, Console& console) {
  const std::vector<Record> found = HONE_TRY(log.find({.after = id - 1, .limit = 1}));
  if (found.empty() || found[0].id != id)
    return bad_input("the log '{}' has no record {}", log.path(), id);
  console.write(record_text(found[0]));
  return {};
}

Status show_hash(const Log& log, uint64_t hash, size_t limit, Console& console) {
  bool is_known = false;
  HONE_TRY(log.visit_texts([&](const KnownText& text) -> Status {
    if (text.hash != hash) return {};
    is_known = true;
    console.print("{} 0x{:016x}\n{}{}", text.kind, hash, text.text,
                  text.text.ends_with("\n") ? "" : "\n");
    return {};
  }));
  HONE_TRY(log.visit_plans([&](const BestPlan& best) -> Status {
    if (best.graph != hash) return {};
    is_known = true;
    console.write(best_plan_text(best));
    return {};
  }));
  const std::vector<Record> records = HONE_TRY(log.find({.subject = hash}));
  console.write(records_table(records, limit));
  if (is_known || !records.empty()) return {};
  return bad_input("the log '{}' knows no 0x{:016x}", log.path(), hash);
}

}  // namespace

Status cmd_log_show(const Arguments& arguments, Console& console) {
  const std::string what = arguments.text("WHAT");
  const std::optional<uint64_t> hash = parse_hash(what);
  const Result<int64_t> id = parse_int(what);
  if (!hash && (!id.ok() || *id < 1))
    return usage_error("'{}' is neither the number of a record nor a hash", excerpt(what))
        .with_hint("a hash is 0x and 16 digits, as 'hone log ls' prints it");
  const std::unique_ptr<Log> log = HONE_TRY(need_log(arguments));
  if (!hash) return show_record(*log, *id, console);
  return show_hash(*log, *hash, static_cast<size_t>(arguments.integer("limit")), console);
}

// ---- Exchanging ---------------------------------------------------------------------------------

namespace {

// Lines that go to a file beside the path until all of them are there.
Status export_to_file(const Log& log, const Query& query, const std::string& path) {
  const std::filesystem::path temporary = temporary_name(path);
  std::FILE* file = std::fopen(temporary.c_str(), "wxe");
  if (file == nullptr) return os_error("write", path, errno);
  Status written = export_lines(log, query, [&](std::string_view line) -> Status {
    if (std::fwrite(line.data(), 1, line.size(), file) == line.size()) return {};
    return os_error("write", path, errno);
  });
  if (std::fclose(file) != 0 && written.ok()) written = os_error("write", path, errno);
  if (written.ok()) return publish_file(temporary, path);
  discard_file(temporary);
  return written;
}

Status import_text(std::string_view text, std::string_view name, LogMerge& merge) {
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    ++number;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (Status taken = import_line(line, merge); !taken.ok())
      return std::move(taken)
          .error()
          .within(fmt::format("{}:{}", name, number))
          .with_hint("earlier lines may have been added; importing them again adds nothing");
  }
  return {};
}

void tell_merged(const LogMerge::Counts& counts, const std::string& path, Console& console) {
  console.note("added {} records, {} texts, {} plans to {}; it had {}, {}, {} of them",
               counts.added.records, counts.added.texts, counts.added.plans, path,
               counts.known.records, counts.known.texts, counts.known.plans);
}

}  // namespace

Status cmd_log_export(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output");
  const Query query = HONE_TRY(given_query(arguments));
  const std::unique_ptr<Log> log = HONE_TRY(need_log(arguments));
  if (path == "-") {
    return export_lines(*log, query, [&](std::string_view line) -> Status {
      console.write(line);
      return {};
    });
  }
  if (path.ends_with(".npz"))
    HONE_TRY(write_npz(path, HONE_TRY(export_arrays(*log, query))));
  else
    HONE_TRY(export_to_file(*log, query, path));
  console.note("wrote {}", path);
  return {};
}

Status cmd_log_import(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("FILE");
  // The file first: a log is not made for one that is not there.
  std::string typed;
  MappedFile mapped;
  if (path == "-")
    typed = HONE_TRY(read_stdin());
  else
    mapped = HONE_TRY(MappedFile::open(path));
  const std::unique_ptr<Log> log = HONE_TRY(open_log(arguments, console));
  LogMerge merge(*log);
  HONE_TRY(path == "-" ? import_text(typed, "<stdin>", merge)
                       : import_text(mapped.text(), path, merge));
  tell_merged(HONE_TRY(merge.finish()), log->path(), console);
  return {};
}

Status cmd_log_merge(const Arguments& arguments, Console& console) {
  std::vector<std::unique_ptr<Log>> others;
  for (const std::string& path : arguments.list("FILE"))
    others.push_back(HONE_TRY(Log::open(path, Log::Mode::read)));
  const std::unique_ptr<Log> log = HONE_TRY(open_log(arguments, console));
  for (const std::unique_ptr<Log>& other : others) {
    LogMerge merge(*log);
    HONE_TRY(merge.take_all(*other));
    tell_merged(HONE_TRY(merge.finish()), log->path(), console);
  }
  return {};
}

// ---- Keeping ------------------------------------------------------------------------------------

namespace {

// Prints what is wrong with a log that can be opened.
Result<LogCheck> verify_log(const Log& log, Console& console) {
  LogCheck check = HONE_TRY(log.verify());
  for (const std::string& damage : check.damage) console.print("{}\n", damage);
  console.note("{} records, {} texts, {} plans in {} are good", check.good.records,
               check.good.texts, check.good.plans, log.path());
  return check;
}

}  // namespace

Status cmd_log_verify(const Arguments& arguments, Console& console) {
  const std::string path = HONE_TRY(log_path(arguments));
  const bool repair = arguments.given("repair");
  int64_t damaged = 1;
  {
    const Result<std::unique_ptr<Log>> log = find_log(arguments);
    // One that cannot be opened can be repaired, if it is a log.
    if (!log.ok() && !repair) return log.error();
    if (log.ok() && *log == nullptr) {
      tell_counts({}, path, console);
      return {};
    }
    if (log.ok()) damaged = HONE_TRY(verify_log(**log, console)).damaged;
  }
  if (damaged == 0) return {};
  if (!repair)
    return check_failed("the log '{}' is damaged in {} places", path, damaged)
        .with_hint("'hone log verify --repair' keeps the good rows");
  tell_salvaged(HONE_TRY(salvage_log(path)), path, console);
  return {};
}

Status cmd_log_gc(const Arguments& arguments, Console& console) {
  GcRules rules = {.dry_run = arguments.given("dry-run")};
  if (arguments.given("days")) {
    using Days = std::chrono::duration<int64_t, std::ratio<86400>>;
    const auto now = std::chrono::system_clock::now() - Days(arguments.integer("days"));
    rules.before = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  }
  if (arguments.given("limit")) rules.bytes = arguments.integer("limit") << 20;
  if (arguments.given("by")) rules.version = arguments.text("by");
  if (HONE_TRY(find_log(arguments)) == nullptr) {
    tell_counts({}, HONE_TRY(log_path(arguments)), console);
    return {};
  }
  const std::unique_ptr<Log> log = HONE_TRY(open_log(arguments, console));
  const Collected collected = HONE_TRY(log->gc(rules));
  console.note("{} {} records and {} texts, kept {} records, {} in {}",
               rules.dry_run ? "would remove" : "removed", collected.records, collected.texts,
               collected.kept, format_bytes(collected.bytes), log->path());
  return {};
}

}  // namespace hone::cli
