#pragma once

#include <functional>
#include <vector>

#include "rules/rule.h"

// Finds the places of a graph, or of an e-graph, where a rule applies, and applies it.

namespace hone {

class EGraph;

// Where the left side stands in a graph.
struct RuleMatch {
  std::vector<ValueId> values;  // of the graph, for each value of the left side
  Bindings sizes;               // of the rule's symbols; they may be symbolic themselves
  int32_t range = 0;            // decades that are assumed of the graph's inputs (known_ranges.h)
};

// Prepared for many graphs. The rule outlives it.
class RuleMatcher {
 public:
  explicit RuleMatcher(const Rule& rule);

  const Rule& rule() const { return *rule_; }
  // Calls `found` with each match until it returns false. Two matches that differ only by the order
  // of operands of commutative ops both count. Nodes of the left side may have other readers.
  void find(const Graph& graph, const std::function<bool(const RuleMatch&)>& found) const;
  std::vector<RuleMatch> all(const Graph& graph, size_t limit = SIZE_MAX) const;
  // The same where values are the classes of an e-graph, which stays as it is meanwhile.
  void find(const EGraph& egraph, const std::function<bool(const RuleMatch&)>& found) const;

  // How each node of the left side is found, after those before it.
  struct Step {
    enum From : uint8_t { anywhere, operand, user } from;
    NodeId node;
    ValueId known;  // operand: its result that is known. user: an operand that is
  };

 private:
  const Rule* rule_;
  std::vector<Step> steps_;
};

// The graph with the right side in the place of the left one. Other readers of values inside of the
// left side keep them; a node that nothing reads any more is removed.
Result<Graph> apply(const Rule& rule, const Graph& graph, const RuleMatch& match);

}  // namespace hone
