#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/winograd.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"
#include "rewrite/transforms.h"

namespace hone {
namespace {

bool are_all_one(const Ints& numbers) {
  return std::ranges::all_of(numbers, [](int64_t each) { return each == 1; });
}

// The points by which the products of the conv may be transformed.
int64_t points_of(const Graph& graph, NodeId conv, const TransformPoints& points) {
  const Op op = graph.op(conv);
  const ValueId weights = graph.operands(conv)[1];
  const NodeId producer = graph.producer(weights);
  if (!is_constant(graph.opcode(producer))) return 0;
  for (std::string_view name : {"stride", "input_dilation", "kernel_dilation"})
    if (!are_all_one(op.ints(name))) return 0;
  const Type type = graph.type(weights);
  const ConvOrder order = *parse_conv_order(op.word("order"), type.rank() - 2);
  const bool is_depthwise = op.integer("groups") > 1 && type.dim(order.kernel_input).is(1);
  return is_depthwise ? 0 : points(graph.constant(producer), order);
}

}  // namespace

Result<Graph> permit_transforms_by(const Graph& graph, const TransformPoints& points) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    Op op = graph.op(n);
    if (is_convolution(graph.opcode(n)))
      op = Op::get(Opcode::conv, changed_attrs(op, {{"winograd", points_of(graph, n, points)}}));
    const auto inside = [&](const Graph& region) { return permit_transforms_by(region, points); };
    HONE_TRY(copy.node(n, op, HONE_TRY(transform_regions(graph, n, inside))));
  }
  return copy.finish();
}

Result<Graph> permit_transforms(const Graph& graph) {
  return permit_transforms_by(graph, winograd_points);
}

}  // namespace hone
