#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// The elements along the axis that the slice takes, if it takes the first ones, in order; else 0.
int64_t first_of_slice(const Graph& graph, NodeId slice, int axis) {
  const Op op = graph.op(slice);
  const auto at = static_cast<size_t>(axis);
  const Dim limit = op.dims("limit")[at];
  const Ints& stride = op.ints("stride");
  const bool is_first =
      op.dims("start")[at].is(0) && limit.is_static() && (stride.empty() || stride[at] == 1);
  return is_first ? limit.value() : 0;
}

// True of a sort: lines may have their first elements alone.
bool may_end_early(Op op) {
  return std::ranges::find(op.def().attrs, "first", &AttrSpec::name) != op.def().attrs.end();
}

// The number of elements of each line that anybody reads of the sort's results, if these are the
// first ones; 0: all.
int64_t first_read(const Graph& graph, const Users& users, NodeId sort) {
  const int axis = static_cast<int>(graph.op(sort).integer("axis"));
  int64_t most = 0;
  for (ValueId result : graph.results(sort)) {
    if (users.is_output(result)) return 0;
    for (NodeId user : users.of(result)) {
      if (!takes_part(graph.opcode(user))) return 0;
      const int64_t first = first_of_slice(graph, user, axis);
      if (first == 0) return 0;
      most = std::max(most, first);
    }
  }
  const Dim length = graph.type(graph.result(sort)).dim(axis);
  return length.is_static() && most < length.value() ? most : 0;
}

}  // namespace

Result<Graph> first_of_sorts(const Graph& graph) {
  GraphCopy copy(graph);
  const Users users(graph);
  for (NodeId n : graph.nodes()) {
    Op op = graph.op(n);
    if (may_end_early(op))
      if (const int64_t first = first_read(graph, users, n); first > 0)
        op = Op::get(op.opcode(), changed_attrs(op, {{"first", first}}));
    const std::vector<GraphRef> regions = HONE_TRY(transform_regions(graph, n, first_of_sorts));
    // A slice of all that is left is what it slices.
    if (takes_part(op.opcode())) {
      const ValueId sliced = copy(graph.operands(n)[0]);
      if (copy.target().type(sliced) == graph.type(graph.result(n)) &&
          copy.target().type(sliced) != graph.type(graph.operands(n)[0])) {
        copy.replace(graph.result(n), sliced);
        continue;
      }
    }
    HONE_TRY(copy.node(n, op, regions));
  }
  return copy.finish();
}

}  // namespace hone
