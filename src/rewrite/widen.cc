#include "ir/graph_copy.h"
#include "rewrite/passes.h"

namespace hone {

namespace {

bool is_half(Type type) {
  return type && (type.dtype() == DType::f16 || type.dtype() == DType::bf16);
}

ValueId cast(GraphCopy& copy, ValueId v, DType dtype) {
  const Op op = Op::get(Opcode::cast, {{"dtype", dtype}});
  return copy.target().result(copy.target().append(op, {&v, 1}).value());
}

// The results if all operands of 16 bits are f32; none if the op does not take them.
std::optional<std::vector<Type>> wide_results(const Graph& graph, NodeId n) {
  std::vector<Type> operands = graph.operand_types(n);
  for (Type& type : operands)
    if (is_half(type)) type = type.with_dtype(DType::f32);
  Result<std::vector<Type>> results = infer({graph.op(n), operands});
  if (!results.ok()) return std::nullopt;
  return *std::move(results);
}

bool has_half(const Graph& graph, NodeId n) {
  for (Type type : graph.operand_types(n))
    if (is_half(type)) return true;
  return false;
}

}  // namespace

// A composite's result is rounded once, not at every step of its expansion.
Result<Graph> widen_composites(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::optional<std::vector<Type>> wide;
    const bool is_whole = is_composite(graph.opcode(n)) && !graph.op(n).def().traits.is_stepwise;
    if (is_whole && has_half(graph, n)) wide = wide_results(graph, n);
    if (!wide) {
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, widen_composites))));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId v : graph.operands(n)) {
      operands.push_back(copy(v));
      if (!v.is_none() && is_half(graph.type(v))) operands.back() = cast(copy, copy(v), DType::f32);
    }
    const NodeId made = HONE_TRY(copy.target().append(graph.op(n), operands));
    for (size_t i = 0; i < wide->size(); ++i) {
      const ValueId result = copy.target().result(made, i);
      const DType dtype = graph.type(graph.result(n, i)).dtype();
      copy.replace(graph.result(n, i),
                   (*wide)[i].dtype() == dtype ? result : cast(copy, result, dtype));
    }
  }
  return copy.finish();
}

}  // namespace hone
