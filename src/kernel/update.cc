#include "kernel/update.h"

#include <algorithm>
#include <unordered_set>

#include "base/planted.h"
#include "ir/op_def.h"

namespace hone {

bool is_update(Opcode opcode) { return op_def(opcode).traits.updates != 0; }

Status check_elementwise(GraphView graph, std::span<const NodeId> nodes, ValueId x) {
  std::unordered_set<uint32_t> made = {x.index};  // of x
  for (NodeId n : nodes) {
    const bool reads = std::ranges::any_of(
        graph.operands(n), [&](ValueId v) { return !v.is_none() && made.contains(v.index); });
    if (!reads) continue;
    if (!HONE_PLANT(donor_elementwise, is_elementwise(graph.opcode(n)), true))
      return bad_input("{} reads '%{}' at other places than it writes", graph.describe(n),
                       graph.name(x));
    for (ValueId v : graph.results(n)) made.insert(v.index);
  }
  return {};
}

ValueId updates_of(GraphView graph, NodeId update) {
  return graph.operands(update)[static_cast<size_t>(graph.op(update).def().traits.updates)];
}

}  // namespace hone
