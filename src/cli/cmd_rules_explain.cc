#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rules.h"
#include "prove/verify.h"
#include "rules/checker/checker.h"
#include "rules/rule_files.h"

namespace hone::cli {
namespace {

std::string sizes_text(const Rule& rule) {
  std::vector<std::string> all;
  for (Symbol s : rule.symbols())
    all.push_back(fmt::format("{} in {}..{}", s.name(), s.min(), s.max()));
  std::string text = all.empty() ? "as they are" : join(all, ", ");
  std::vector<std::string> guard;
  for (const Condition& condition : rule.guard) guard.push_back(condition.to_string());
  return guard.empty() ? text : fmt::format("{}, when {}", text, join(guard, ", "));
}

std::string sampled_text(const IdentityTest& test) {
  if (test.counterexample) return fmt::format("refuted: {}", test.counterexample->to_string());
  const std::string text = fmt::format("equal at {} lists of sizes, up to {} elements each; ",
                                       test.sizes, test.elements);
  return text + (test.log2_error
                     ? fmt::format("a difference is missed with a probability of at most 2^{:.0f}",
                                   *test.log2_error)
                     : "the probability of a miss is not known");
}

std::string small_text(const RuleVerdict& verdict) {
  if (verdict.small_sizes == 0) return "the elements are not told as polynomials";
  return fmt::format("the same polynomials at {} lists of small sizes", verdict.small_sizes);
}

std::string proof_text(const RuleVerdict& verdict) {
  if (verdict.rung != Rung::all_sizes) return fmt::format("not proved: {}", verdict.stopped);
  return fmt::format("proved: one normal form in {} of the results",
                     verdict.boxes == 1 ? "all" : fmt::format("each of {} boxes", verdict.boxes));
}

std::string certificate_text(const Rule& rule, const RuleVerdict& verdict) {
  if (verdict.certificate.empty()) return "none";
  const Result<std::vector<Certificate>> read = parse_certificates(verdict.certificate, "proof");
  if (!read.ok()) return read.error().to_string();
  const Status good = check_certificate(rule, read->front());
  const std::string steps = fmt::format("{} steps", read->front().steps.size());
  return good.ok() ? fmt::format("{}, good", steps)
                   : fmt::format("{}, refused: {}", steps, good.error().to_string());
}

std::string floats_text(const RuleVerdict& verdict) {
  const std::string_view meaning = [&] {
    switch (verdict.floats) {
      case FloatEffect::exact: return "all bits are equal";
      case FloatEffect::reassociates: return "the errors of both sides are of one size";
      case FloatEffect::finite_only: return "but for NaN the errors of both sides are of one size";
      case FloatEffect::real_only: return "true only of real numbers";
      case FloatEffect::unknown: break;
    }
    return "not tested";
  }();
  const std::string text = fmt::format("{}: {}", name(verdict.floats), meaning);
  return verdict.float_fault.empty() ? text : fmt::format("{}; {}", text, verdict.float_fault);
}

std::string magnitudes_text(const Rule& rule) {
  if (rule.within.empty()) return "nothing overflows or vanishes that the left side keeps";
  return fmt::format("{} may overflow or vanish where the left side does not", within_text(rule));
}

std::string default_text(const Rule& rule) {
  if (!is_sound(rule)) return "not used";
  return rule.within.empty() ? "used" : "used where magnitudes are known";
}

}  // namespace

Status cmd_rules_explain(const Arguments& arguments, Console& console) {
  Rule rule = HONE_TRY(named_rule(arguments));
  const RuleVerdict verdict = HONE_TRY(verify(rule));
  TextTable table("ll", {});
  table.add_row({"nodes", fmt::format("{} become {}", nodes_of(rule.left), nodes_of(rule.right))});
  table.add_row({"sizes", sizes_text(rule)});
  table.add_row({"sampled", sampled_text(verdict.identity)});
  if (!verdict.refuted()) {
    say(rule, verdict);
    table.add_row({"small", small_text(verdict)});
    table.add_row({"all sizes", proof_text(verdict)});
    table.add_row({"certificate", certificate_text(rule, verdict)});
    table.add_row({"floats", floats_text(verdict)});
    table.add_row({"magnitudes", magnitudes_text(rule)});
    table.add_row({"by default", default_text(rule)});
  }
  console.write(table.to_string());
  if (verdict.refuted()) return check_failed("the rule '{}' is not true", rule.name);
  return {};
}

}  // namespace hone::cli
