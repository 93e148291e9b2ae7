#pragma once

#include <functional>
#include <vector>

#include "rules/egraph.h"
#include "rules/known_ranges.h"
#include "rules/rewrites.h"
#include "rules/saturate.h"

// Turns a choice in an e-graph into rewrites of the graph that it was made of. Plans keep these.

namespace hone {

// Two nodes of the left side are one node of the graph: true, and of no use.
bool merges_one_with_itself(const Rule& rule, const RuleMatch& match);

struct Retraced {
  Graph graph;
  std::vector<Rewrite> rewrites;
};

// The applications that have made the nodes, and those that these needed, done again one after
// another as far as each matches. A value that one has replaced, another one may have wanted.
// `rules` are those of the saturation; nothing more is tried once `may_go_on` says no, and nothing
// done that floats might not stand.
Result<Retraced> retrace(Graph graph, const EGraph& egraph, const Saturated& saturated,
                         std::span<const RuleMatcher> rules, std::span<const uint32_t> origins,
                         const Ranges& ranges, const std::function<bool()>& may_go_on);

}  // namespace hone
