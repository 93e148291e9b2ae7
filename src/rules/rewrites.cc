#include "rules/rewrites.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "ir/op_facts.h"
#include "rewrite/overlap.h"
#include "rewrite/passes.h"
#include "rules/known_ranges.h"

namespace hone {
namespace {

constexpr std::string_view kRewritable[] = {"widen", "expand", "fold", "sink",
                                            "fold",  "splats", "cse",  "names"};

std::vector<ValueId> results_of(const Rule& rule, const RuleMatch& match) {
  std::vector<ValueId> results;
  for (ValueId v : rule.left.outputs()) results.push_back(match.values[v.index]);
  return results;
}

std::vector<std::string> names_of(const Graph& graph, std::span<const ValueId> values) {
  std::vector<std::string> names;
  for (ValueId v : values) names.emplace_back(graph.name(v));
  return names;
}

// "%a, %b"
std::string place_of(const Rewrite& rewrite) {
  std::vector<std::string> names;
  for (const std::string& name : rewrite.results) names.push_back("%" + excerpt(name));
  return join(names, ", ");
}

// A product is divided into steps, so that devices compute while they exchange data.
Result<Graph> with_overlap(const Graph& graph, const Rewrite& wanted, const Overlap& overlap) {
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    if (wanted.results == std::vector{std::string(graph.name(ValueId{v}))})
      return name_values(
          HONE_TRY(merge_common_subexpressions(HONE_TRY(overlapped(graph, ValueId{v}, overlap)))));
  return bad_input("there is no value '{}' to divide into steps", place_of(wanted));
}

// Two outputs may have become one value, or one an input; then a reshape to the same dims has the
// name.
Result<Graph> with_names_of(Graph graph, const Graph& given) {
  std::vector<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::string name(given.name(given.outputs()[o]));
    if (graph.name(outputs[o]) == name) continue;
    bool is_taken = is_parameter(graph.opcode(graph.producer(outputs[o])));
    for (size_t other = 0; other < outputs.size(); ++other)
      is_taken |= other != o && outputs[other] == outputs[o];
    if (is_taken) {
      const auto dims = graph.type(outputs[o]).dims();
      const Op same = Op::get(Opcode::reshape, {{"dims", Dims(dims.begin(), dims.end())}});
      outputs[o] = graph.result(HONE_TRY(graph.append(same, {&outputs[o], 1})));
    }
    for (uint32_t v = 0; v < graph.value_count(); ++v)
      if (graph.name(ValueId{v}) == name) graph.set_name(ValueId{v}, "");
    graph.set_name(outputs[o], name);
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

}  // namespace

Result<Graph> rewritable(const Graph& graph) {
  std::vector<Pass> passes;
  for (std::string_view name : kRewritable)
    passes.push_back(*std::ranges::find(all_passes(), name, &Pass::name));
  return run_passes(graph, passes);
}

Result<Graph> rewrite(const Rule& rule, const Graph& graph, const RuleMatch& match) {
  const Graph applied = HONE_TRY(apply(rule, graph, match));
  return name_values(HONE_TRY(merge_common_subexpressions(applied)));
}

Rewrite rewrite_of(const RuleMatcher& rule, const Graph& graph, const RuleMatch& match) {
  const std::vector<ValueId> results = results_of(rule.rule(), match);
  Rewrite found = {rule.rule().name, names_of(graph, results), 0, match.range};
  rule.find(graph, [&](const RuleMatch& other) {
    found.match += results_of(rule.rule(), other) == results;
    return other.values != match.values;
  });
  return found;
}

Result<RuleMatch> find_rewrite(const RuleMatcher& rule, const Graph& graph, const Rewrite& wanted) {
  std::optional<RuleMatch> found;
  int64_t left = wanted.match;
  rule.find(graph, [&](const RuleMatch& match) {
    if (names_of(graph, results_of(rule.rule(), match)) != wanted.results || --left > 0)
      return true;
    found = match;
    return false;
  });
  if (found) return *std::move(found);
  return bad_input("the rule '{}' does not match at {}", excerpt(wanted.rule), place_of(wanted));
}

Result<Graph> replay(Graph graph, std::span<const Rewrite> rewrites, std::span<const Rule> rules) {
  std::map<std::string_view, RuleMatcher> matchers;
  const Ranges ranges;
  for (size_t i = 0; i < rewrites.size(); ++i) {
    const Rewrite& each = rewrites[i];
    const auto step = [&]() -> Result<Graph> {
      if (const std::optional<Overlap> overlap = overlap_from_name(each.rule))
        return with_overlap(graph, each, *overlap);
      const auto rule = std::ranges::find(rules, each.rule, &Rule::name);
      if (rule == rules.end()) {
        std::vector<std::string_view> names;
        for (const Rule& one : rules) names.push_back(one.name);
        return bad_input("there is no rule '{}'", excerpt(each.rule))
            .with_hint(did_you_mean(each.rule, names));
      }
      const RuleMatcher& matcher = matchers.try_emplace(rule->name, *rule).first->second;
      RuleMatch match = HONE_TRY(find_rewrite(matcher, graph, each));
      const Ranges assumed = ranges.with(each.range);
      if (!KnownRanges(graph, assumed).suffice(*rule, match))
        return bad_input("the rule '{}' might overflow or vanish at {}", excerpt(each.rule),
                         place_of(each))
            .with_hint("--assume-range looks for rewrites again, for inputs within a range");
      return rewrite(*rule, graph, match);
    };
    Result<Graph> next = step();
    if (!next.ok()) return std::move(next).error().within(fmt::format("rewrite {}", i + 1));
    graph = *std::move(next);
  }
  return graph;
}

Result<Graph> finish_rewrites(const Graph& rewritten, const Graph& given) {
  return with_names_of(HONE_TRY(fold_weights(rewritten)), given);
}

}  // namespace hone
