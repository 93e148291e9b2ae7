#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "prove/foreign.h"
#include "prove/guard.h"
#include "prove/needed.h"
#include "rules/rule_files.h"
#include "session/echo.h"

namespace hone::cli {
namespace {

Result<std::vector<ForeignRule>> load_foreign(const std::string& path, bool pairs) {
  const std::string text = HONE_TRY(read_file(path, kMaxRuleText));
  if (!path.ends_with(".pb")) return parse_foreign_rules(text, path, pairs);
  const std::vector<TasoRule> rules =
      HONE_TRY(parse_taso_rules(std::as_bytes(std::span(text)), path));
  Result<std::vector<ForeignRule>> foreign = foreign_rules(rules);
  if (!foreign.ok()) return std::move(foreign).error().within(path);
  return foreign;
}

Result<std::vector<Rule>> rules_of(const Arguments& arguments) {
  std::vector<Rule> all;
  for (const std::string& path : arguments.list("FILE")) {
    const std::string text = HONE_TRY(read_file(path, kMaxRuleText));
    std::vector<Rule> rules = HONE_TRY(parse_rules(text, {.file = path}));
    std::ranges::move(rules, std::back_inserter(all));
  }
  return all;
}

// The outcome for the rules of a file.
class Import {
 public:
  explicit Import(const VerifyOptions& options) : options_(options) {}

  void add(const ForeignRule& foreign) {
    const Result<TypedRule> rule = typed_rule(foreign);
    if (!rule.ok()) {
      const bool is_outside = rule.error().code() == ErrorCode::unsupported;
      return put(foreign.name, is_outside ? "outside" : "rejected", "", rule.error().what());
    }
    Result<GuardSearch> search = infer_guard(rule->rule, {.verify = options_});
    if (!search.ok()) {
      const bool is_outside = search.error().code() == ErrorCode::unsupported;
      return put(foreign.name, is_outside ? "outside" : "rejected", "", search.error().what());
    }
    if (!search->rule)
      return put(foreign.name, "rejected", "", search->counterexample->to_string());
    std::vector<std::string> guard;
    for (const Condition& condition : search->rule->guard) guard.push_back(condition.to_string());
    std::string when = guard.empty() ? "" : "when " + join(guard, ", ");
    if (!rule->assumed.empty()) when = trim(fmt::format("{} {}", rule->assumed, when));
    const bool is_proved = search->verdict.rung == Rung::all_sizes;
    const std::string_view outcome = !when.empty() ? "guarded" : is_proved ? "proved" : "shown";
    kept_ += (kept_.empty() ? "" : "\n") + print(*search->rule);
    proofs_ += search->verdict.certificate;
    put(foreign.name, outcome, name(search->verdict.floats),
        when.empty() ? search->verdict.stopped : when);
  }

  const std::string& kept() const { return kept_; }
  const std::string& proofs() const { return proofs_; }
  const nlohmann::ordered_json& rows() const { return rows_; }
  std::string table() const { return table_.to_string(); }
  std::string counts() const {
    std::vector<std::string> pieces;
    for (std::string_view outcome : {"proved", "guarded", "shown", "rejected", "outside"})
      pieces.push_back(fmt::format("{} {}{}", counts_.contains(outcome) ? counts_.at(outcome) : 0,
                                   outcome, outcome == "outside" ? " the ops of hone" : ""));
    return fmt::format("{} rules: {}", rows_.size(), join(pieces, ", "));
  }

 private:
  void put(std::string_view rule, std::string_view outcome, std::string_view floats,
           std::string_view remark) {
    ++counts_[outcome];
    table_.add_row(
        {std::string(rule), std::string(outcome), std::string(floats), std::string(remark)});
    rows_.push_back({{"rule", rule}, {"result", outcome}, {"floats", floats}, {"remark", remark}});
  }

  const VerifyOptions options_;
  TextTable table_ = TextTable("llll", {"rule", "result", "floats", "remark"});
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::map<std::string_view, size_t> counts_;
  std::string kept_, proofs_;
};

}  // namespace

Status cmd_rules_import(const Arguments& arguments, Console& console) {
  const std::string output = arguments.text("output"), json = arguments.text("json");
  const std::string proofs = arguments.text("proofs");
  const std::vector<ForeignRule> rules =
      HONE_TRY(load_foreign(arguments.text("FILE"), arguments.given("pairs")));
  const std::unique_ptr<Progress> progress = console.progress();
  Import import({.seed = static_cast<uint64_t>(arguments.integer("seed"))});
  progress->start(static_cast<int64_t>(rules.size()), "rules");
  for (const ForeignRule& rule : rules) {
    HONE_TRY(console.cancel().check());
    import.add(rule);
    progress->advance();
  }
  progress->finish();
  if (json != "-") console.write(import.table());
  if (!json.empty()) HONE_TRY(write_text(json, import.rows().dump(2) + "\n", console));
  if (!output.empty()) HONE_TRY(write_text(output, import.kept(), console));
  if (!proofs.empty()) HONE_TRY(write_text(proofs, import.proofs(), console));
  console.note("{}", import.counts());
  return {};
}

Status cmd_rules_export(const Arguments& arguments, Console& console) {
  std::string text;
  size_t written = 0;
  const std::vector<Rule> rules = HONE_TRY(rules_of(arguments));
  for (const Rule& rule : rules) {
    HONE_TRY(console.cancel().check());
    const Result<std::string> line = foreign_text(rule);
    if (!line.ok()) {
      console.note("{}: {}", rule.name, line.error().what());
      continue;
    }
    text += *line + "\n";
    ++written;
  }
  HONE_TRY(write_text(arguments.text("output"), text, console));
  console.note("{} of {} rules are written", written, rules.size());
  return {};
}

Status cmd_rules_needed(const Arguments& arguments, Console& console) {
  const std::string output = arguments.text("output");
  const std::vector<Rule> rules = HONE_TRY(rules_of(arguments));
  const std::unique_ptr<Progress> progress = console.progress();
  const NeededRules found = HONE_TRY(needed_rules(
      rules, static_cast<size_t>(arguments.integer("max-nodes")), *progress, &console.cancel()));
  TextTable table("ll", {"rule", ""});
  std::vector<bool> is_derived(rules.size(), false);
  for (size_t i : found.derived) is_derived[i] = true;
  for (size_t i = 0; i < rules.size(); ++i)
    table.add_row({rules[i].name, is_derived[i] ? "follows from the others" : "needed"});
  console.write(table.to_string());
  std::vector<Rule> needed;
  for (size_t i : found.needed) needed.push_back(rules[i]);
  if (!output.empty()) HONE_TRY(write_text(output, print(needed), console));
  console.note("{} of {} rules are needed, {} follow from them", found.needed.size(), rules.size(),
               found.derived.size());
  return {};
}

}  // namespace hone::cli
