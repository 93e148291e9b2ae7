#include "report/conformance_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"

namespace hone {
namespace {

using Rows = std::vector<const ConformanceRow*>;

Rows rows_of(const ConformanceReport& report, CaseClass result) {
  Rows rows;
  for (const ConformanceRow& row : report.rows)
    if (row.outcome.result == result) rows.push_back(&row);
  return rows;
}

void count(ClassCounts& counts, CaseClass result) { ++counts[static_cast<size_t>(result)]; }

struct SetCounts {
  std::string set;
  ClassCounts counts = {};
};

// In the order in which they were searched. Cases that their authors do not run are a set of their
// own.
std::vector<SetCounts> counts_by_set(const ConformanceReport& report) {
  std::vector<SetCounts> sets;
  for (const ConformanceRow& row : report.rows) {
    const std::string set = row.which.set + (row.which.disabled.empty() ? "" : ", disabled");
    const auto same = [&](const SetCounts& one) { return one.set == set; };
    auto found = std::find_if(sets.begin(), sets.end(), same);
    if (found == sets.end()) found = sets.insert(sets.end(), {set});
    count(found->counts, row.outcome.result);
  }
  return sets;
}

std::vector<std::string> count_cells(std::string_view title, const ClassCounts& counts) {
  int64_t all = 0;
  for (int64_t one : counts) all += one;
  std::vector<std::string> cells = {std::string(title), std::to_string(all)};
  for (int64_t one : counts) cells.push_back(std::to_string(one));
  return cells;
}

// The last row is the total of several sets.
std::vector<std::vector<std::string>> count_rows(const ConformanceReport& report) {
  std::vector<std::vector<std::string>> rows;
  const std::vector<SetCounts> sets = counts_by_set(report);
  for (const SetCounts& set : sets) rows.push_back(count_cells(set.set, set.counts));
  if (sets.size() != 1) rows.push_back(count_cells("all", class_counts(report)));
  return rows;
}

std::vector<std::string> count_titles() {
  std::vector<std::string> titles = {"set", "cases"};
  for (CaseClass result : kCaseClasses) titles.emplace_back(name(result));
  return titles;
}

// Most frequent first.
std::vector<std::pair<std::string, Rows>> by_reason(const Rows& rows) {
  std::map<std::string, Rows> groups;
  for (const ConformanceRow* row : rows) groups[row->outcome.reason].push_back(row);
  std::vector<std::pair<std::string, Rows>> list(groups.begin(), groups.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                              : a.first < b.first;
  });
  return list;
}

// A reason may quote anything from a file.
std::string one_line(std::string_view text) { return escape(text); }

std::string case_line(const ConformanceRow& row) {
  const CaseOutcome& outcome = row.outcome;
  std::string line =
      fmt::format("{:<11}  {}/{}", name(outcome.result), row.which.set, row.which.name);
  if (!outcome.reason.empty()) line += fmt::format(": {}", one_line(outcome.reason));
  if (!outcome.where.empty()) line += fmt::format(" ({})", one_line(outcome.where));
  return line + "\n";
}

std::string symbolic_text(const ConformanceReport& report) {
  std::map<SymbolicDims, int64_t> counts;
  for (const ConformanceRow& row : report.rows)
    if (row.outcome.result == CaseClass::pass || row.outcome.result == CaseClass::wrong)
      ++counts[row.outcome.symbolic];
  return fmt::format(
      "symbolic dims: all in {} cases, the leading ones in {}, all but typed late in {}, none in "
      "{}\n",
      counts[SymbolicDims::all], counts[SymbolicDims::leading], counts[SymbolicDims::deferred],
      counts[SymbolicDims::none]);
}

// In a cell of a table of Markdown.
std::string cell(std::string_view text) {
  std::string safe;
  for (char c : one_line(text)) {
    if (c == '|' || c == '<' || c == '*' || c == '_') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", join(cells, " | "));
}

std::string names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const ConformanceRow* row : rows) names.push_back(fmt::format("`{}`", row->which.name));
  return join(names, ", ");
}

nlohmann::ordered_json case_json(const ConformanceRow& row) {
  const CaseOutcome& outcome = row.outcome;
  return {
      {"name", row.which.name},
      {"set", row.which.set},
      {"folder", row.which.folder.string()},
      {"disabled", row.which.disabled},
      {"result", name(outcome.result)},
      {"reason", outcome.reason},
      {"where", outcome.where},
      {"symbolic", name(outcome.symbolic)},
      {"data_sets", outcome.data_sets},
      {"seconds", outcome.seconds},
      {"max_rss", outcome.max_rss},
  };
}

}  // namespace

ClassCounts class_counts(const ConformanceReport& report) {
  ClassCounts counts = {};
  for (const ConformanceRow& row : report.rows) count(counts, row.outcome.result);
  return counts;
}

std::string conformance_text(const ConformanceReport& report, bool all) {
  std::string text;
  if (all) {
    for (const ConformanceRow& row : report.rows) text += case_line(row);
    text += "\n";
  }
  TextTable table("lrrrrr", count_titles());
  for (std::vector<std::string>& row : count_rows(report)) table.add_row(std::move(row));
  text += table.to_string();
  if (report.mode == CaseMode::symbolic) text += symbolic_text(report);
  if (all) return text;

  std::string faults;
  for (CaseClass result : {CaseClass::wrong, CaseClass::crashed})
    for (const ConformanceRow* row : rows_of(report, result)) faults += case_line(*row);
  if (!faults.empty()) text += "\n" + faults;
  TextTable reasons("rll", {"cases", "unsupported because", "such as"});
  for (const auto& [reason, rows] : by_reason(rows_of(report, CaseClass::unsupported)))
    reasons.add_row({std::to_string(rows.size()), one_line(reason), rows[0]->which.name});
  if (!reasons.empty()) text += "\n" + reasons.to_string();
  TextTable disabled("lll", {"disabled case", "its authors say", "result"});
  for (const ConformanceRow& row : report.rows)
    if (!row.which.disabled.empty())
      disabled.add_row(
          {row.which.name, one_line(row.which.disabled), std::string(name(row.outcome.result))});
  if (!disabled.empty()) text += "\n" + disabled.to_string();
  return text;
}

std::string conformance_json(const ConformanceReport& report) {
  nlohmann::ordered_json object;
  object["mode"] = name(report.mode);
  // Null: by type and scale.
  const auto number = [](std::optional<double> given) -> nlohmann::ordered_json {
    if (given) return *given;
    return nullptr;
  };
  object["rtol"] = number(report.tolerance.relative);
  object["atol"] = number(report.tolerance.absolute);
  const ClassCounts counts = class_counts(report);
  for (CaseClass result : kCaseClasses)
    object["summary"][std::string(name(result))] = counts[static_cast<size_t>(result)];
  object["cases"] = nlohmann::ordered_json::array();
  for (const ConformanceRow& row : report.rows) object["cases"].push_back(case_json(row));
  return object.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string conformance_markdown(const ConformanceReport& report) {
  std::string text =
      "# Conformance\n\n"
      "<!-- Generated by `hone conformance --markdown`; `./dev docs` writes it anew. -->\n\n"
      "Test cases of the ONNX standard, run by `hone conformance`. A case passes if every output "
      "has the\nexpected type and agrees: integers and bools are equal, numbers of f32 within\n";
  text += fmt::format("{}.\n\n", to_string(report.tolerance));
  text += markdown_row(count_titles());
  text += "|---|---:|---:|---:|---:|---:|\n";
  for (const std::vector<std::string>& row : count_rows(report)) text += markdown_row(row);
  for (CaseClass result : {CaseClass::wrong, CaseClass::crashed, CaseClass::unsupported}) {
    const Rows rows = rows_of(report, result);
    if (rows.empty()) continue;
    text += fmt::format("\n## {}\n\n| cases | reason | which |\n|---:|---|---|\n", name(result));
    for (const auto& [reason, group] : by_reason(rows))
      text += markdown_row({std::to_string(group.size()), cell(reason), names_of(group)});
  }
  return text;
}

}  // namespace hone
