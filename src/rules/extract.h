#pragma once

#include <functional>
#include <vector>

#include "base/progress.h"
#include "rules/egraph.h"

namespace hone {

// The cost of a node, by any measure that adds up; not negative. Nodes over constants alone are
// computed once and cost nothing: nobody is asked for them.
using NodeCost = std::function<double(const EGraph& egraph, NodeId n)>;

struct ExtractLimits {
  double seconds = 10;
  const CancelToken* cancel = nullptr;
};

struct Extracted {
  Graph graph;
  double cost = 0;                // each node once, however many read it
  std::vector<uint32_t> origins;  // of its nodes and shortcuts, ascending, without kSource
};

// One of the graphs, without cycles, and cheap: the cheapest is as hard to find as a set cover.
// First, from the inputs on, each class takes the node that is cheapest with all it needs. Then
// classes change their nodes as long as the whole gets cheaper. One class changes, or all classes
// that have a node over another class, which none of them has reason to read alone. A merge of
// products pays so. Names are those of the values.
Result<Extracted> extract(const EGraph& egraph, const NodeCost& cost,
                          const ExtractLimits& limits = {});

}  // namespace hone
