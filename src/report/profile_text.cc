#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "report/profile.h"

namespace hone {

namespace {

constexpr size_t kSegmentTables = 5;
constexpr size_t kColumns = 100;
constexpr size_t kLeastLabel = 16;

std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }
std::string share(double part, double all) { return percent(all > 0 ? part / all : 0); }

// Where a word may end: behind what stands between the parts of names.
bool ends_word(char c) { return c == ' ' || c == '/' || c == '.' || c == '_'; }

// At most `width` characters. The middle is left out, in whole words unless one alone is longer
// than half of that. Names in files may have any bytes; a terminal gets printable ones alone.
std::string shortened(std::string_view text, size_t width) {
  constexpr std::string_view kGap = "..";
  const std::string whole = escape(text);
  if (whole.size() <= width) return whole;
  const size_t kept = width - kGap.size();
  size_t front = kept / 3, back = whole.size() - (kept - front);
  const size_t most = width / 2;  // that is given up for whole words
  size_t at = front;
  while (at > 0 && !ends_word(whole[at - 1])) --at;
  if (at > 0) front = at;
  at = back;
  while (at < whole.size() && !ends_word(whole[at - 1])) ++at;
  if (at - back <= most && at < whole.size()) back = at;
  return whole.substr(0, front).append(kGap) + whole.substr(back);
}

std::string step_text(const StepTime& step) {
  if (step.launches == 1 || step.command.empty()) return step.command;
  return fmt::format("{} x{:.4g}", step.command, step.launches);
}

using Row = std::vector<std::string>;
const Row kTitles = {"layer", "step", "writes", "algorithm", "time", "share", "priced", "of peak"};

Row row_of(const StepTime& step, double total) {
  return {step.label(),
          excerpt(step_text(step)),
          step.writes,
          step.algorithm,
          format_seconds(step.seconds),
          share(step.seconds, total),
          step.priced >= 0 ? format_seconds(step.priced) : "",
          step.part_of_peak > 0 ? percent(step.part_of_peak) : ""};
}

// As wide as what the other columns leave to the first.
std::string table_of(std::vector<Row> rows) {
  size_t others = 0;
  for (size_t column = 1; column < kTitles.size(); ++column) {
    size_t width = kTitles[column].size();
    for (const Row& row : rows) width = std::max(width, row[column].size());
    others += 2 + width;
  }
  const size_t width = std::max(kLeastLabel, kColumns - std::min(kColumns, others));
  TextTable table("llllrrrr", kTitles);
  for (Row& row : rows) {
    row[0] = shortened(row[0], width);
    table.add_row(std::move(row));
  }
  return table.to_string();
}

std::string table_of(const SegmentProfile& segment, size_t most) {
  std::vector<Row> rows;
  const std::vector<StepTime>& steps = segment.steps;
  double rest = segment.seconds;
  for (const StepTime& step : std::span(steps).first(std::min(most, steps.size()))) {
    rest -= step.seconds;
    rows.push_back(row_of(step, segment.seconds));
  }
  const auto sum = [&](std::string label, double seconds) {
    Row row(kTitles.size());
    row[0] = std::move(label);
    row[4] = format_seconds(seconds);
    if (seconds < segment.seconds) row[5] = share(seconds, segment.seconds);
    rows.push_back(std::move(row));
  };
  if (steps.size() > most) sum(fmt::format("{} others", steps.size() - most), std::max(0.0, rest));
  sum("all", segment.seconds);
  return table_of(std::move(rows));
}

std::string segments_text(std::span<const SegmentProfile> profile, size_t most) {
  double total = 0;
  for (const SegmentProfile& one : profile) total += one.seconds;
  TextTable table("llrrr", {"segment", "sizes", "runs", "time", "share"});
  double rest = total;
  for (const SegmentProfile& one : profile.first(std::min(most, profile.size()))) {
    rest -= one.seconds;
    table.add_row({shortened(one.name, kColumns / 3), shortened(one.sizes, kColumns / 3),
                   fmt::format("{:.4g}", one.runs), format_seconds(one.seconds),
                   share(one.seconds, total)});
  }
  if (profile.size() > most)
    table.add_row({fmt::format("{} others", profile.size() - most), "", "",
                   format_seconds(std::max(0.0, rest)), share(rest, total)});
  table.add_row({"all", "", "", format_seconds(total), ""});
  return table.to_string();
}

using Json = nlohmann::ordered_json;

Json json_of(const StepTime& step) {
  Json json = {{"layers", step.layers},     {"step", step.command},    {"kernel", step.kernel},
               {"launches", step.launches}, {"seconds", step.seconds}, {"writes", step.writes}};
  if (!step.after.empty()) json["after"] = step.after;
  if (step.priced < 0) return json;
  json["algorithm"] = step.algorithm;
  json["schedule"] = step.schedule;
  json["priced"] = step.priced;
  json["computes"] = step.computes;
  json["operations_per_second"] = step.rate;
  json["peak"] = step.peak;
  json["of_peak"] = step.part_of_peak;
  return json;
}

}  // namespace

std::string profile_text(std::span<const SegmentProfile> profile, size_t most) {
  if (profile.size() == 1) return table_of(profile[0], most);
  std::string text = segments_text(profile, most);
  for (const SegmentProfile& one : profile.first(std::min(kSegmentTables, profile.size()))) {
    if (one.steps.empty()) continue;
    text += fmt::format("\n# segment {}{}{}\n", excerpt(one.name), one.sizes.empty() ? "" : ", ",
                        one.sizes);
    text += table_of(one, most);
  }
  return text;
}

std::string profile_json(std::span<const SegmentProfile> profile) {
  Json segments = Json::array();
  for (const SegmentProfile& one : profile) {
    Json json = {{"name", one.name},
                 {"sizes", one.sizes},
                 {"runs", one.runs},
                 {"seconds", one.seconds},
                 {"steps", Json::array()}};
    for (const StepTime& step : one.steps) json["steps"].push_back(json_of(step));
    segments.push_back(std::move(json));
  }
  return segments.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hone
