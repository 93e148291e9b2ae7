#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

// The k greatest elements of a line are found by sorting the line and cutting off the rest. To
// choose them takes a time that grows with the line alone, so a sort whose readers all cut it says
// how many elements are kept.

namespace hone {
namespace {

// How many elements of each line the slice takes, if these are the first ones.
std::optional<int64_t> head_of(const Graph& graph, NodeId n, size_t axis) {
  if (!takes_part(graph.opcode(n))) return {};
  const Op op = graph.op(n);
  const Ints& stride = op.ints("stride");
  const Dim limit = op.dims("limit")[axis];
  const bool is_head =
      op.dims("start")[axis].is(0) && limit.is_static() && (stride.empty() || stride[axis] == 1);
  return is_head ? std::optional(limit.value()) : std::nullopt;
}

// How many elements of each line of a sort are read; 0: all of them, or nobody knows.
int64_t elements_read(const Graph& graph, const Users& users, NodeId sort) {
  const Op op = graph.op(sort);
  const auto axis = static_cast<size_t>(op.integer("axis"));
  int64_t most = 0;
  for (const ValueId result : graph.results(sort)) {
    if (users.is_output(result)) return 0;
    for (const NodeId reader : users.of(result)) {
      const std::optional<int64_t> head = head_of(graph, reader, axis);
      if (!head) return 0;
      most = std::max(most, *head);
    }
  }
  const Dim length = graph.type(graph.operands(sort)[0]).dim(static_cast<int>(axis));
  return most < length.range().low ? most : 0;
}

}  // namespace

Result<Graph> sort_heads(const Graph& graph) {
  const Users users(graph);
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    if (takes_part(graph.opcode(n))) {
      const ValueId whole = graph.operands(n)[0], head = copy(whole);
      const Type type = graph.type(graph.result(n));
      if (type != graph.type(whole) && type == copy.target().type(head)) {
        copy.replace(graph.result(n), head);  // the sort has cut it off
        continue;
      }
    }
    Op op = graph.op(n);
    const bool is_sort = graph.opcode(n) == Opcode::sort && op.integer("kept") == 0;
    const int64_t kept = is_sort ? elements_read(graph, users, n) : 0;
    if (kept > 0) op = Op::get(Opcode::sort, changed_attrs(op, {{"kept", kept}}));
    HONE_TRY(copy.node(n, op, HONE_TRY(transform_regions(graph, n, sort_heads))));
  }
  return copy.finish();
}

}  // namespace hone
