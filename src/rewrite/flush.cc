#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

namespace hone {

namespace {

// Whether some machine multiplies such numbers faster if it may.
bool is_flushed(DType dtype) { return dtype == DType::bf16 || dtype == DType::f32; }

}  // namespace

Result<Graph> permit_flushing(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    Op op = graph.op(n);
    const bool has_pairs = class_of(graph.opcode(n)) == OpClass::contraction &&
                           is_flushed(graph.type(graph.operands(n)[0]).dtype());
    if (has_pairs) op = Op::get(op.opcode(), changed_attrs(op, {{"flush", true}}));
    HONE_TRY(copy.node(n, op, HONE_TRY(transform_regions(graph, n, permit_flushing))));
  }
  return copy.finish();
}

}  // namespace hone
