#include "kernel/kernel_kind.h"

#include <algorithm>

#include "ir/op_facts.h"
#include "ir/ops/conv_order.h"
#include "kernel/words.h"

namespace hone {
namespace {

// A product in which an operand has no dim of its own reads the other one once.
bool is_product_with_vector(const KernelFacts& facts) {
  double points = 1;  // all multiplications
  for (const KernelFacts::Loop& loop : facts.loops) points *= loop.extent;
  return std::ranges::any_of(facts.arrays, [&](const KernelFacts::Array& array) {
    return array.side >= 0 && array.bytes / array.element >= points;
  });
}

std::string_view kind_of_conv(const KernelFacts& facts) {
  const Graph& graph = facts.body.graph;
  const Op conv = graph.op(facts.space.anchor);
  if (conv.integer("groups") > 1) {
    const Type kernel = graph.type(graph.operands(facts.space.anchor)[1]);
    const ConvOrder order = *parse_conv_order(conv.word("order"), kernel.rank() - 2);
    return kernel.dim(order.kernel_input).is(1) ? "depthwise" : "grouped";
  }
  const auto summed = std::ranges::count_if(
      facts.loops, [](const auto& loop) { return !loop.is_result && loop.extent > 1; });
  return summed <= 1 ? "conv 1x1" : "conv";  // channels alone, or a window, too
}

}  // namespace

std::string_view kernel_kind(const KernelFacts& facts, Algorithm planned) {
  if (planned == Algorithm::chain) return "chain";
  const Graph& graph = facts.body.graph;
  bool reduces = false, moves = true;
  for (NodeId node : facts.nodes) {
    const OpClass of = class_of(graph.opcode(node));
    reduces = reduces || of == OpClass::reduction || of == OpClass::segmented;
    moves = moves && has_points(graph.opcode(node));
  }
  if (facts.space.has_anchor()) {
    const OpClass of = class_of(graph.opcode(facts.space.anchor));
    if (of == OpClass::window) return "pool";
    if (const auto words =
            word_products(graph, facts.space.anchor, relation_of(graph, facts.space.anchor)))
      return words->products == Products::pairs ? "pairs" : "bytes";
    if (of == OpClass::contraction && is_convolution(graph.opcode(facts.space.anchor)))
      return kind_of_conv(facts);
    if (of == OpClass::contraction) return is_product_with_vector(facts) ? "gemv" : "dot";
  }
  if (reduces) return "rows";
  return moves ? "elementwise" : "other";
}

}  // namespace hone
