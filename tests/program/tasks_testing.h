#pragma once

#include "ir/graph.h"
#include "plan/collectives.h"

namespace hone::tested {

// True if lower() makes tasks of the graph that its plan does not have. Scans pad parts of less
// than a byte, and a permute of device 0 with itself asks for the device in a kernel.
inline bool has_tasks_of_its_own(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    for (const GraphRef& region : graph.regions(n))
      if (has_tasks_of_its_own(*region)) return true;
    const Op op = graph.op(n);
    if (op.name() == "permute" && !op.ints("pairs").empty() && !exchanges_data(op)) return true;
    if (graph.opcode(n) != Opcode::scan) continue;
    for (ValueId v : graph.operands(n))
      if (bits(graph.type(v).dtype()) < 8) return true;
    for (ValueId v : graph.results(n))
      if (bits(graph.type(v).dtype()) < 8) return true;
  }
  return false;
}

}  // namespace hone::tested
