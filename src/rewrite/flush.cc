#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

namespace hone {

Result<Graph> permit_flushing(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    Op op = graph.op(n);
    const bool is_bf16 = class_of(graph.opcode(n)) == OpClass::contraction &&
                         graph.type(graph.operands(n)[0]).dtype() == DType::bf16;
    if (is_bf16) op = Op::get(op.opcode(), changed_attrs(op, {{"flush", true}}));
    HONE_TRY(copy.node(n, op, HONE_TRY(transform_regions(graph, n, permit_flushing))));
  }
  return copy.finish();
}

}  // namespace hone
