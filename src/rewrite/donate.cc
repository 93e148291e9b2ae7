#include <set>

#include "ir/graph_copy.h"
#include "ir/loop_state.h"
#include "rewrite/passes.h"

namespace hone {

// The bodies of loops may store each new state where the old one is.
Result<Graph> donate_states(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::vector<GraphRef> regions = HONE_TRY(transform_regions(graph, n, donate_states));
    const std::vector<bool> unchanged = unchanged_state(graph, n);
    if (!unchanged.empty()) {
      Graph body = *regions.back();
      std::set<uint32_t> inputs, outputs;
      for (const Donation& donation : body.donations()) {
        inputs.insert(donation.input);
        outputs.insert(donation.output);
      }
      for (uint32_t i = 0; i < unchanged.size(); ++i)
        if (!unchanged[i] && !inputs.contains(i) && !outputs.contains(i)) body.add_donation(i, i);
      regions.back() = std::make_shared<const Graph>(std::move(body));
    }
    HONE_TRY(copy.node(n, graph.op(n), std::move(regions)));
  }
  return copy.finish();
}

}  // namespace hone
