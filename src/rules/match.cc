#include "rules/match.h"

#include <algorithm>
#include <optional>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rules/match_search.h"

namespace hone {

// ---- The order of the search --------------------------------------------------------------------

// Backwards from the first result; then from what is known to its users; then from any node.
RuleMatcher::RuleMatcher(const Rule& rule) : rule_(&rule) {
  const Graph& left = rule.left;
  std::vector<bool> known(left.value_count()), placed(left.node_count());
  const auto is_pattern = [&](NodeId n) { return !is_parameter(left.opcode(n)); };
  const auto place = [&](Step step) {
    steps_.push_back(step);
    placed[step.node.index] = true;
    for (ValueId v : left.results(step.node)) known[v.index] = true;
    for (ValueId v : left.operands(step.node))
      if (!v.is_none()) known[v.index] = true;
  };
  const auto next = [&]() -> std::optional<Step> {
    for (NodeId n : left.nodes())
      if (is_pattern(n) && !placed[n.index])
        for (ValueId v : left.results(n))
          if (known[v.index]) return Step{Step::operand, n, v};
    for (NodeId n : left.nodes())
      if (is_pattern(n) && !placed[n.index])
        for (ValueId v : left.operands(n))
          if (!v.is_none() && known[v.index]) return Step{Step::user, n, v};
    for (ValueId v : left.outputs())
      if (!placed[left.producer(v).index]) return Step{Step::anywhere, left.producer(v), {}};
    return std::nullopt;
  };
  while (std::optional<Step> step = next()) place(*step);
}

// ---- The search ---------------------------------------------------------------------------------

namespace {

class GraphHost {
 public:
  explicit GraphHost(const Graph& graph) : graph_(graph), users_(graph) {}

  Opcode opcode(NodeId n) const { return graph_.opcode(n); }
  Op op(NodeId n) const { return graph_.op(n); }
  const Tensor& constant(NodeId n) const { return graph_.constant(n); }
  std::span<const ValueId> operands(NodeId n) const { return graph_.operands(n); }
  ValueRange results(NodeId n) const { return graph_.results(n); }
  Type type(ValueId v) const { return graph_.type(v); }

  template <class Use>
  void makers(ValueId v, size_t result, const Use& use) const {
    if (graph_.result_index(v) == result) use(graph_.producer(v));
  }
  template <class Use>
  void readers(ValueId v, const Use& use) const {
    std::optional<NodeId> last;  // a node that reads twice stands twice
    for (NodeId n : users_.of(v)) {
      if (last == n) continue;
      last = n;
      if (!use(n)) return;
    }
  }
  template <class Use>
  void nodes(Opcode opcode, const Use& use) const {
    for (NodeId n : graph_.nodes())
      if (graph_.opcode(n) == opcode && !use(n)) return;
  }

  // No input of the match may depend on one of its results.
  bool may_replace(const Rule& rule, const RuleMatch& match) const {
    uint32_t first = UINT32_MAX;
    std::vector<bool> reached(graph_.node_count());
    for (ValueId v : rule.left.outputs()) {
      const NodeId n = graph_.producer(match.values[v.index]);
      reached[n.index] = true;
      first = std::min(first, n.index);
    }
    uint32_t last = 0;
    for (ValueId v : rule.left.inputs())
      last = std::max(last, graph_.producer(match.values[v.index]).index);
    for (uint32_t n = first + 1; n <= last; ++n)
      for (ValueId v : graph_.operands({n}))
        if (!v.is_none() && reached[graph_.producer(v).index]) reached[n] = true;
    return std::ranges::none_of(rule.left.inputs(), [&](ValueId v) {
      return reached[graph_.producer(match.values[v.index]).index];
    });
  }

 private:
  const Graph& graph_;
  const Users users_;
};

}  // namespace

void RuleMatcher::find(const Graph& graph,
                       const std::function<bool(const RuleMatch&)>& found) const {
  const GraphHost host(graph);
  MatchSearch<GraphHost>(*rule_, steps_, host, found).run();
}

std::vector<RuleMatch> RuleMatcher::all(const Graph& graph, size_t limit) const {
  std::vector<RuleMatch> matches;
  find(graph, [&](const RuleMatch& match) {
    matches.push_back(match);
    return matches.size() < limit;
  });
  return matches;
}

// ---- Applying -----------------------------------------------------------------------------------

Result<Graph> apply(const Rule& rule, const Graph& graph, const RuleMatch& match) {
  const Graph right = HONE_TRY(specialize(rule.right, match.sizes));
  GraphCopy copy(graph);
  std::vector<bool> is_replaced(graph.value_count());
  for (ValueId v : rule.left.outputs()) is_replaced[match.values[v.index].index] = true;
  // The right side comes as soon as its inputs are there. A reader of a result comes behind it: it
  // waits until then, as does what reads that.
  std::vector<bool> has_copy(graph.value_count());
  const auto is_ready = [&](std::span<const ValueId> values) {
    return std::ranges::all_of(values, [&](ValueId v) { return v.is_none() || has_copy[v.index]; });
  };
  std::vector<ValueId> arguments;
  for (ValueId v : rule.left.inputs()) arguments.push_back(match.values[v.index]);
  bool is_placed = false;
  std::vector<NodeId> waiting(graph.node_count());
  for (uint32_t n = 0; n < graph.node_count(); ++n) waiting[n] = {n};
  const auto place = [&]() -> Status {
    const std::vector<ValueId> results = HONE_TRY(copy.append(right, copy(arguments)));
    for (size_t o = 0; o < results.size(); ++o) {
      const ValueId v = match.values[rule.left.outputs()[o].index];
      copy.replace(v, results[o]);
      has_copy[v.index] = true;
    }
    is_placed = true;
    return {};
  };
  while (!waiting.empty()) {
    std::vector<NodeId> later;
    for (NodeId n : waiting) {
      if (!is_placed && is_ready(arguments)) HONE_TRY(place());
      if (!is_ready(graph.operands(n))) {
        later.push_back(n);
        continue;
      }
      const ValueRange results = graph.results(n);
      bool all_replaced = results.size() > 0;
      for (ValueId v : results) all_replaced = all_replaced && is_replaced[v.index];
      if (all_replaced) continue;  // what makes them is dead
      std::vector<std::pair<ValueId, ValueId>> stay;
      if (is_placed)
        for (ValueId v : results)
          if (is_replaced[v.index]) stay.emplace_back(v, copy(v));
      HONE_TRY(copy.node(n));
      for (auto [v, replacement] : stay) copy.replace(v, replacement);
      for (ValueId v : results)
        if (!is_replaced[v.index]) has_copy[v.index] = true;
    }
    if (!is_placed && is_ready(arguments)) HONE_TRY(place());
    HONE_CHECK(later.size() < waiting.size() || later.empty(), "the match has a cycle");
    waiting = std::move(later);
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
