#include "search/retrace.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/op_facts.h"

namespace hone {
namespace {

class Retracing {
 public:
  Retracing(Graph graph, const EGraph& egraph, const Saturated& saturated,
            std::span<const RuleMatcher> rules, const Ranges& ranges)
      : egraph_(egraph), saturated_(saturated), rules_(rules), ranges_(ranges) {
    result_.graph = std::move(graph);
  }

  Result<Retraced> run(std::span<const uint32_t> origins, const std::function<bool()>& may_go_on) {
    for (uint32_t origin : origins) need(origin);
    // An application comes after those that its left side is made of.
    std::vector<uint32_t> open(needed_.begin(), needed_.end());
    for (size_t before = SIZE_MAX; before != open.size() && may_go_on();) {
      before = open.size();
      classes_ = egraph_.classes_in(result_.graph);
      std::vector<uint32_t> later;
      for (uint32_t origin : open)
        if (!may_go_on() || !HONE_TRY(apply(origin))) later.push_back(origin);
      open = std::move(later);
    }
    return std::move(result_);
  }

 private:
  const Rule& rule_of(uint32_t origin) const { return rules_[saturated_.rule_of[origin]].rule(); }
  ValueId class_of(uint32_t origin, ValueId v) const {
    return v.is_none() ? v : egraph_.find(saturated_.values_of[origin][v.index]);
  }

  void need(uint32_t origin) {
    std::vector<uint32_t> open = {origin};
    while (!open.empty()) {
      const uint32_t next = open.back();
      open.pop_back();
      if (!needed_.insert(next).second) continue;
      const Graph& left = rule_of(next).left;
      for (NodeId n : left.nodes())
        if (const std::optional<uint32_t> maker = maker_of(next, n)) open.push_back(*maker);
    }
  }

  // The application that has made a node of the left side, if none is of the graph.
  std::optional<uint32_t> maker_of(uint32_t origin, NodeId n) const {
    const Graph& left = rule_of(origin).left;
    if (is_parameter(left.opcode(n)) || is_constant(left.opcode(n))) return std::nullopt;
    std::optional<uint32_t> first;
    for (const EGraph::Member& member : egraph_.members(class_of(origin, left.result(n)))) {
      if (member.result != 0 || !is_like(member.node, origin, n)) continue;
      const uint32_t maker = egraph_.origin(member.node);
      if (maker == EGraph::kSource) return std::nullopt;
      if (maker < origin && (!first || maker < *first)) first = maker;
    }
    return first;
  }

  bool is_like(NodeId node, uint32_t origin, NodeId n) const {
    const Graph& left = rule_of(origin).left;
    const auto pattern = left.operands(n), actual = egraph_.operands(node);
    if (egraph_.opcode(node) != left.opcode(n) || actual.size() != pattern.size()) return false;
    const auto reads = [&](size_t o, size_t as) {
      return class_of(origin, pattern[o]) ==
             (actual[as].is_none() ? actual[as] : egraph_.find(actual[as]));
    };
    bool is_same = true;
    for (size_t o = 0; o < pattern.size(); ++o) is_same = is_same && reads(o, o);
    const bool commutes = left.op(n).def().traits.commutative && pattern.size() == 2;
    return is_same || (commutes && reads(0, 1) && reads(1, 0));
  }

  // True if it matches where the e-graph has it.
  Result<bool> apply(uint32_t origin) {
    const RuleMatcher& rule = rules_[saturated_.rule_of[origin]];
    const Graph& left = rule.rule().left;
    std::optional<RuleMatch> found;
    KnownRanges known(result_.graph, ranges_);
    rule.find(result_.graph, [&](RuleMatch match) {
      const auto is_there = [&](ValueId v) {
        return classes_[match.values[v.index].index] == class_of(origin, v);
      };
      if (std::ranges::all_of(left.outputs(), is_there) &&
          std::ranges::all_of(left.inputs(), is_there) &&
          !merges_one_with_itself(rule.rule(), match) && known.suffice(rule.rule(), match))
        found = std::move(match);
      return !found;
    });
    if (!found) return false;
    result_.rewrites.push_back(rewrite_of(rule, result_.graph, *found));
    result_.graph = HONE_TRY(rewrite(rule.rule(), result_.graph, *found));
    classes_ = egraph_.classes_in(result_.graph);
    return true;
  }

  const EGraph& egraph_;
  const Saturated& saturated_;
  const std::span<const RuleMatcher> rules_;
  const Ranges& ranges_;
  std::set<uint32_t> needed_;
  std::vector<ValueId> classes_;  // of the graph so far
  Retraced result_;
};

}  // namespace

bool merges_one_with_itself(const Rule& rule, const RuleMatch& match) {
  const auto outputs = rule.left.outputs();
  for (size_t o = 1; o < outputs.size(); ++o)
    for (size_t p = 0; p < o; ++p)
      if (match.values[outputs[o].index] == match.values[outputs[p].index]) return true;
  return false;
}

Result<Retraced> retrace(Graph graph, const EGraph& egraph, const Saturated& saturated,
                         std::span<const RuleMatcher> rules, std::span<const uint32_t> origins,
                         const Ranges& ranges, const std::function<bool()>& may_go_on) {
  return Retracing(std::move(graph), egraph, saturated, rules, ranges).run(origins, may_go_on);
}

}  // namespace hone
