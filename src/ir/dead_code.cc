#include "ir/graph_copy.h"

namespace hone {

Result<Graph> remove_dead_code(const Graph& graph) {
  std::vector<bool> live = live_nodes(graph);
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes())
    if (live[n.index])
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, remove_dead_code))));
  return copy.finish();
}

}  // namespace hone
