#include "report/log_text.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "log/hash_text.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

// One line of at most `width` characters.
std::string cut(std::string_view text, size_t width) {
  std::string line = escape(text.substr(0, 4 * width));
  if (line.size() <= width) return line;
  line.resize(width - 3);
  return line + "...";
}

std::string time_text(int64_t time) {
  constexpr int64_t kLast = 253'402'300'799;  // of the year 9999
  if (time > kLast) return fmt::format("{} s after 1970", time);
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(time)));
}

// The line that says what a text is about: that of the graph, where there is one.
std::string title_of(std::string_view text) {
  for (std::string_view line : split_lines(text.substr(0, 4096))) {
    if (!consume_prefix(line, "graph ")) continue;
    if (line.ends_with(" {")) line.remove_suffix(2);
    return std::string(line);
  }
  return text.empty() ? "" : std::string(split_lines(text.substr(0, 4096))[0]);
}

// `target "avx512-2c" {` -> avx512-2c
std::string target_name(std::string_view text) {
  const size_t begin = text.find('"'), end = text.find('"', begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, end - begin - 1));
}

std::string best_text(const std::optional<double>& best) {
  return best ? format_seconds(*best) : "-";
}

}  // namespace

Result<std::string> log_survey(const Log& log, std::span<const LogGroup> groups) {
  std::string text;
  std::vector<std::pair<uint64_t, std::string>> parts;  // in the order of their latest records
  for (const LogGroup& group : groups) {
    std::pair<uint64_t, std::string> part(group.target, group.conditions);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  for (const auto& [target, conditions] : parts) {
    const std::string known = HONE_TRY(log.text("target", target)).value_or("");
    text += text.empty() ? "" : "\n";
    const std::string title = fmt::format("target {} {}", hash_text(target), target_name(known));
    text += cut(trim(title), 99) + "\n";
    text += cut(conditions, 99) + "\n";
    TextTable table("llrrrrl", {"kind", "subject", "records", "choices", "failed", "best", "what"});
    for (const LogGroup& group : groups) {
      if (group.target != target || group.conditions != conditions) continue;
      const std::string what = HONE_TRY(log.text(group.kind, group.subject)).value_or("");
      table.add_row({cut(group.kind, 10), hash_text(group.subject), format_count(group.records),
                     format_count(group.choices), format_count(group.failed), best_text(group.best),
                     cut(title_of(what), 30)});
    }
    text += table.to_string();
  }
  return text;
}

std::string log_survey_json(const LogCounts& counts, std::span<const LogGroup> groups) {
  Json object;
  object["records"] = counts.records;
  object["texts"] = counts.texts;
  object["plans"] = counts.plans;
  object["groups"] = Json::array();
  for (const LogGroup& group : groups) {
    Json row;
    row["kind"] = group.kind;
    row["subject"] = hash_text(group.subject);
    row["target"] = hash_text(group.target);
    row["conditions"] = group.conditions;
    row["records"] = group.records;
    row["choices"] = group.choices;
    row["failed"] = group.failed;
    row["best_seconds"] = group.best ? Json(*group.best) : Json(nullptr);
    row["last_time"] = group.last_time;
    object["groups"].push_back(std::move(row));
  }
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string record_text(const Record& record) {
  std::string text =
      fmt::format("record {}: {} {}\n", record.id, record.kind, hash_text(record.subject));
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<11}{}\n", name, value);
  };
  line("code", hash_text(record.code));
  line("target", hash_text(record.target));
  line("conditions", escape(record.conditions));
  line("outcome", std::string(name(record.outcome)));
  line("detail", escape(record.detail));
  line("version", escape(record.version));
  line("time", time_text(record.time));
  if (record.noise > 0) line("noise", fmt::format("{:.3g} %", 100 * record.noise));
  if (!record.seconds.empty()) {
    const auto [least, most] = std::ranges::minmax(record.seconds);
    line("median", fmt::format("{} of {} samples, {} to {}", format_seconds(median(record)),
                               record.seconds.size(), format_seconds(least), format_seconds(most)));
  }
  text += record.choice.ends_with("\n") ? record.choice : record.choice + "\n";
  for (double sample : record.seconds) text += format_double(sample) + "\n";
  return text;
}

std::string records_table(std::vector<Record> records, size_t limit) {
  std::map<std::pair<uint64_t, std::string>, std::vector<Record>> parts;
  for (Record& record : records)
    parts[{record.target, record.conditions}].push_back(std::move(record));
  std::string text;
  for (auto& [key, part] : parts) {
    std::ranges::sort(part, {}, [](const Record& record) {
      const double never = std::numeric_limits<double>::infinity();
      return std::pair(record.seconds.empty() ? never : median(record), record.id);
    });
    text += fmt::format("\ntarget {}\n{}\n", hash_text(key.first), cut(key.second, 99));
    TextTable table("rrrl", {"record", "samples", "median", "choice"});
    for (const Record& record : std::span(part).first(std::min(limit, part.size())))
      table.add_row({fmt::format("{}", record.id), fmt::format("{}", record.seconds.size()),
                     record.seconds.empty() ? std::string(name(record.outcome))
                                            : format_seconds(median(record)),
                     cut(record.choice, 60)});
    text += table.to_string();
    if (part.size() > limit) text += fmt::format("and {} more\n", part.size() - limit);
  }
  return text;
}

std::string best_plan_text(const BestPlan& best) {
  return fmt::format(
      "\nbest plan on target {} with {} threads: {:.3f} times as fast as the default, {:.3f} to "
      "{:.3f},\nby version {}, {}\n{}",
      hash_text(best.target), best.threads, best.gain, best.low, best.high, escape(best.version),
      time_text(best.time), best.plan.ends_with("\n") ? best.plan : best.plan + "\n");
}

}  // namespace hone
