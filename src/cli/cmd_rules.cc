#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rules.h"
#include "cli/source.h"
#include "prove/correct.h"
#include "prove/guard.h"
#include "prove/verify.h"
#include "rules/checker/checker.h"
#include "rules/rule_files.h"
#include "session/echo.h"

namespace hone::cli {

Result<std::vector<Rule>> load_rules(const std::string& path) {
  const std::string text = HONE_TRY(read_file(path, kMaxRuleText));
  return parse_rules(text, {.file = path});
}

namespace {

// All of hone's own, sound or not.
Result<std::vector<Rule>> built_in_rules() {
  std::vector<Rule> all;
  for (const RuleFile& file : rule_files()) {
    std::vector<Rule> rules = HONE_TRY(parse_rules(file.text, {.file = std::string(file.name)}));
    std::ranges::move(rules, std::back_inserter(all));
  }
  return all;
}

}  // namespace

Result<Rule> named_rule(const Arguments& arguments) {
  const std::string wanted = arguments.text("NAME");
  const bool has_file = arguments.given("FILE");
  std::vector<std::string> names;
  std::vector<Rule> rules =
      HONE_TRY(has_file ? load_rules(arguments.text("FILE")) : built_in_rules());
  for (Rule& rule : rules) {
    if (rule.name == wanted) return std::move(rule);
    names.push_back(rule.name);
  }
  std::string hint = did_you_mean(wanted, names);
  if (has_file)
    return usage_error("'{}' has no rule '{}'", arguments.text("FILE"), excerpt(wanted))
        .with_hint(hint);
  if (hint.empty()) hint = "'hone rules list' lists them; one of a file is FILE NAME";
  return usage_error("hone has no rule '{}' of its own", excerpt(wanted)).with_hint(hint);
}

std::string within_text(const Rule& rule) {
  std::vector<std::string> values;
  for (ValueId v : rule.within) values.push_back(rule.right.label(v));
  return join(values, ", ");
}

size_t nodes_of(const Graph& graph) { return graph.node_count() - graph.inputs().size(); }

namespace {

Result<std::vector<Rule>> given_rules(const Arguments& arguments) {
  if (!arguments.given("FILE")) return built_in_rules();
  std::vector<Rule> all;
  for (const std::string& path : arguments.list("FILE")) {
    std::vector<Rule> rules = HONE_TRY(load_rules(path));
    std::ranges::move(rules, std::back_inserter(all));
  }
  return all;
}

// "2^-118"; of rules about order: "no bound".
std::string error_text(const IdentityTest& test) {
  return test.log2_error ? fmt::format("2^{:.0f}", *test.log2_error) : "no bound";
}

std::string result_text(const Result<RuleVerdict>& verdict) {
  if (!verdict.ok()) return "not tested";
  return verdict->refuted() ? "refuted" : std::string(name(verdict->rung));
}

// The lines about a rule besides its row.
std::string remark(const Result<RuleVerdict>& verdict) {
  if (!verdict.ok()) return verdict.error().to_string();
  if (verdict->refuted()) return verdict->identity.counterexample->to_string();
  if (!verdict->float_fault.empty() && !verdict->stopped.empty())
    return fmt::format("{}; {}", verdict->float_fault, verdict->stopped);
  return verdict->float_fault.empty() ? verdict->stopped : verdict->float_fault;
}

nlohmann::ordered_json json_of(const Rule& rule, const Result<RuleVerdict>& verdict) {
  nlohmann::ordered_json row = {{"rule", rule.name}, {"result", result_text(verdict)}};
  if (verdict.ok() && !verdict->refuted()) {
    row["floats"] = name(verdict->floats);
    for (ValueId v : verdict->within) row["within"].push_back(rule.right.label(v));
    if (verdict->identity.log2_error) row["log2_error"] = *verdict->identity.log2_error;
    row["small_sizes"] = verdict->small_sizes;
    row["boxes"] = verdict->boxes;
  }
  if (const std::string more = remark(verdict); !more.empty()) row["remark"] = more;
  return row;
}

struct Counts {
  size_t rules = 0, refuted = 0, untested = 0, all_sizes = 0, claimed = 0, guarded = 0,
         corrected = 0;

  std::string to_string() const {
    std::string text = fmt::format("{} rules: {} proved for all sizes, {} refuted, {} not tested",
                                   rules, all_sizes, refuted, untested);
    if (guarded > 0) text += fmt::format(", {} got a guard", guarded);
    if (corrected > 0) text += fmt::format(", {} got corrections", corrected);
    return text;
  }
};

}  // namespace

Status cmd_rules_list(const Arguments& arguments, Console& console) {
  TextTable table("lrrllll", {"rule", "left", "right", "shown", "floats", "within", "guard"});
  for (const Rule& rule : HONE_TRY(given_rules(arguments))) {
    std::vector<std::string> guard;
    for (const Condition& condition : rule.guard) guard.push_back(condition.to_string());
    table.add_row({rule.name, fmt::format("{}", nodes_of(rule.left)),
                   fmt::format("{}", nodes_of(rule.right)), std::string(name(rule.rung)),
                   std::string(name(rule.floats)), within_text(rule), join(guard, ", ")});
  }
  console.write(table.to_string());
  return {};
}

Status cmd_rules_show(const Arguments& arguments, Console& console) {
  console.write(print(HONE_TRY(named_rule(arguments))));
  return {};
}

namespace {

// What is said and kept of rules while they are verified.
class Verification {
 public:
  Verification(const Arguments& arguments, Progress& progress)
      : arguments_(arguments),
        progress_(progress),
        options_({.seed = static_cast<uint64_t>(arguments.integer("seed"))}) {}

  void add(const Rule& rule) {
    ++counts_.rules;
    Result<RuleVerdict> verdict = verify(rule, options_);
    if (verdict.ok() && verdict->refuted() && arguments_.given("corrections")) {
      const Result<Correction> search = infer_correction(rule, options_);
      if (search.ok() && search->rule) return add_corrected(rule, *search);
      progress_.note(fmt::format("{}: no correction was found: {}", rule.name,
                                 search.ok() ? search->why : search.error().to_string()));
    }
    if (verdict.ok() && verdict->refuted() && arguments_.given("guards")) {
      const Result<GuardSearch> search = infer_guard(rule, {.verify = options_});
      if (search.ok() && search->rule) return add_guarded(rule, *search);
      if (search.ok())
        progress_.note(fmt::format("{}: no guard was found: {}", rule.name, search->why));
    }
    add(rule, verdict);
  }

  const Counts& counts() const { return counts_; }
  std::string kept() const { return print(kept_); }
  const std::string& proofs() const { return proofs_; }
  const nlohmann::ordered_json& rows() const { return rows_; }
  std::string table() const { return table_.to_string(); }

 private:
  void add_guarded(const Rule& rule, const GuardSearch& search) {
    ++counts_.guarded;
    std::vector<std::string> guard;
    for (size_t i = rule.guard.size(); i < search.rule->guard.size(); ++i)
      guard.push_back(search.rule->guard[i].to_string());
    progress_.note(fmt::format("{}: {}; true when {}", rule.name,
                               search.counterexample->to_string(), join(guard, ", ")));
    add(*search.rule, search.verdict);
    rows_.back()["guard"] = guard;
  }

  void add_corrected(const Rule& rule, const Correction& search) {
    ++counts_.corrected;
    progress_.note(fmt::format("{}: {}; true with corrections in {}", rule.name,
                               search.counterexample->to_string(), join(search.boxes, " ")));
    add(*search.rule, search.verdict);
    rows_.back()["corrections"] = search.boxes;
  }

  void add(const Rule& rule, const Result<RuleVerdict>& verdict) {
    rows_.push_back(json_of(rule, verdict));
    const std::string more = remark(verdict);
    const bool is_bad = !verdict.ok() || verdict->refuted();
    if (!verdict.ok()) ++counts_.untested;
    if (verdict.ok() && verdict->refuted()) ++counts_.refuted;
    if (is_bad || arguments_.given("verbose"))
      if (!more.empty()) progress_.note(fmt::format("{}: {}", rule.name, more));
    if (is_bad) {
      table_.add_row({rule.name, result_text(verdict), "", "", "", "", ""});
      return;
    }
    if (verdict->rung == Rung::all_sizes) ++counts_.all_sizes;
    if (verdict->rung < rule.rung) {
      ++counts_.claimed;
      progress_.note(fmt::format("{}: the file claims {}, but {} was shown", rule.name,
                                 name(rule.rung), name(verdict->rung)));
    }
    Rule shown = rule;
    say(shown, *verdict);
    table_.add_row({rule.name, std::string(name(shown.rung)), std::string(name(shown.floats)),
                    within_text(shown), error_text(verdict->identity),
                    fmt::format("{}", verdict->small_sizes), fmt::format("{}", verdict->boxes)});
    kept_.push_back(std::move(shown));
    proofs_ += verdict->certificate;
  }

  const Arguments& arguments_;
  Progress& progress_;
  const VerifyOptions options_;
  TextTable table_ =
      TextTable("llllrrr", {"rule", "shown", "floats", "within", "error", "small sizes", "boxes"});
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  Counts counts_;
  std::vector<Rule> kept_;
  std::string proofs_;
};

}  // namespace

Status cmd_rules_verify(const Arguments& arguments, Console& console) {
  const std::string output = arguments.text("output"), json = arguments.text("json");
  const std::string proofs = arguments.text("proofs");
  const std::vector<Rule> rules = HONE_TRY(given_rules(arguments));
  const std::unique_ptr<Progress> progress = console.progress();
  Verification verification(arguments, *progress);
  progress->start(static_cast<int64_t>(rules.size()), "rules");
  for (const Rule& rule : rules) {
    HONE_TRY(console.cancel().check());
    verification.add(rule);
    progress->advance();
  }
  progress->finish();
  if (json != "-") console.write(verification.table());
  if (!json.empty()) HONE_TRY(write_text(json, verification.rows().dump(2) + "\n", console));
  if (!output.empty()) HONE_TRY(write_text(output, verification.kept(), console));
  if (!proofs.empty()) HONE_TRY(write_text(proofs, verification.proofs(), console));
  const Counts& counts = verification.counts();
  console.note("{}", counts.to_string());
  if (counts.refuted > 0)
    return check_failed("{} of {} rules are not true", counts.refuted, counts.rules);
  if (counts.untested > 0)
    return unsupported("{} of {} rules could not be tested", counts.untested, counts.rules);
  if (counts.claimed > 0)
    return check_failed("{} of {} rules claim more than was shown", counts.claimed, counts.rules);
  return {};
}

Status cmd_rules_check(const Arguments& arguments, Console& console) {
  const std::vector<Rule> rules = HONE_TRY(load_rules(arguments.text("FILE")));
  const std::string path = arguments.text("PROOFS");
  const std::string text = HONE_TRY(read_file(path, kMaxRuleText));
  std::map<std::string, Certificate> certificates;
  for (Certificate& one : HONE_TRY(parse_certificates(text, path)))
    certificates.insert_or_assign(one.rule, std::move(one));
  size_t good = 0, refused = 0, missing = 0;
  for (const Rule& rule : rules) {
    HONE_TRY(console.cancel().check());
    const auto at = certificates.find(rule.name);
    if (at == certificates.end()) {
      if (rule.rung != Rung::all_sizes) continue;  // nothing says that there is a proof
      ++missing;
      console.note("{}: there is no certificate", rule.name);
      continue;
    }
    const Status status = check_certificate(rule, at->second);
    if (!status.ok()) console.note("{}: {}", rule.name, status.error().to_string());
    ++(status.ok() ? good : refused);
  }
  console.note("{} rules: {} certificates are good, {} refused, {} missing", rules.size(), good,
               refused, missing);
  if (refused + missing > 0)
    return check_failed("{} of {} rules are not shown to be true", refused + missing, rules.size());
  return {};
}

}  // namespace hone::cli
