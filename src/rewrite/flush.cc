#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/ops/contraction.h"
#include "ir/ops/conv_order.h"
#include "rewrite/constants.h"
#include "rewrite/effective_terms.h"
#include "rewrite/passes.h"

namespace hone {

namespace {

// The terms that sums need to be as accurate in two parts of bf16 as the rule asks for: 4 times the
// errors of f32 (docs/accuracy.md). Take n independent products of like size whose sum is about 1.
// The rest that two parts leave out of each adds up to about 2^-17.9, for any n. In f32 each of n
// sums so far is rounded: the errors add up to 2^-25.8 sqrt(n). So the ratio is about 240 / sqrt(n)
// in the mean, and less for the largest errors. A simulation used random weights of 6144 effective
// terms (8192 to 9650 numbers). The largest of 4096 errors are 1.7 to 2.8 times those of f32. They
// are 2.1 to 3.1 times if half of the data is 0, as after a relu, and up to 4 times if three
// quarters are.
//
// Weights of different sizes: a product matters to f32 by how many sums are rounded behind it. In
// the mean over all orders that is as if sizes were equal. In the worst one, large weights last, it
// is at most effective_terms(), which is less than the number of weights. Fourth powers, (sum
// w^2)^2 over sum w^4, would ask for too much. There n small weights and one sqrt(n) times as large
// count as 4. In the worst order they count as n / 2.
constexpr double kLongSum = 6144;

// True if some machine multiplies such numbers faster if it may.
bool is_flushed(DType dtype) { return dtype == DType::bf16 || dtype == DType::f32; }

constexpr int kMostSteps = 16;  // of a graph that makes the data, looked at

// True if the graph itself makes no zeros in the data, so that sums have as many terms as numbers.
// There are no rows of zeros and a one, no padding and no masks. An op that is not known to make
// none may make some.
bool is_dense(const Graph& graph, ValueId v, int steps = kMostSteps) {
  const NodeId n = graph.producer(v);
  if (is_parameter(graph.opcode(n))) return true;
  if (is_constant(graph.opcode(n))) return graph.constant(n).elements() == 1;
  const OpClass sort = class_of(graph.opcode(n));
  if (sort == OpClass::contraction || sort == OpClass::reduction) return true;
  const bool is_elementwise = sort == OpClass::elementwise && graph.opcode(n) != Opcode::select;
  if (steps == 0 || !(is_elementwise || is_move(graph, n))) return false;
  return std::ranges::all_of(graph.operands(n), [&](ValueId operand) {
    return is_real(graph.type(operand).dtype()) && is_dense(graph, operand, steps - 1);
  });
}

// The dims of the operand that are summed over; none if these cannot be weights, or some windows
// have zeros of padding or in between.
Ints summed_dims(const Graph& graph, NodeId n, size_t side) {
  const Op op = graph.op(n);
  if (is_dot(graph.opcode(n))) return op.ints(side == 0 ? "lhs_contract" : "rhs_contract");
  if (!is_convolution(graph.opcode(n)) || side == 0) return {};
  const auto all = [&](std::string_view name, auto holds) {
    return std::ranges::all_of(op.ints(name), holds);
  };
  const auto is_none = [](int64_t padding) { return padding <= 0; };
  if (!all("pad_low", is_none) || !all("pad_high", is_none) ||
      !all("input_dilation", [](int64_t each) { return each == 1; }))
    return {};
  const int rank = graph.type(graph.operands(n)[1]).rank();
  const ConvOrder order = *parse_conv_order(op.word("order"), rank - 2);
  Ints dims;
  for (int dim = 0; dim < rank; ++dim)
    if (dim != order.kernel_output) dims.push_back(dim);
  return dims;
}

// Weights are read only if there are enough of them.
bool are_long_sums(const Tensor& weights, const Ints& summed) {
  double terms = 1;
  for (int64_t dim : summed)
    terms *= static_cast<double>(weights.type().dim(static_cast<int>(dim)).value());
  return terms >= kLongSum && effective_terms(weights, summed) >= kLongSum;
}

// The parts of bf16 that numbers of the contraction have to be cut into.
int64_t parts_of(const Graph& graph, NodeId n) {
  if (graph.op(n).integer("parts") == kTf32Parts) return kTf32Parts;
  const std::span<const ValueId> operands = graph.operands(n);
  for (size_t side = 0; side < 2; ++side) {
    const NodeId weights = graph.producer(operands[side]);
    if (is_constant(graph.opcode(weights)) && graph.type(operands[side]).dtype() == DType::f32 &&
        is_dense(graph, operands[1 - side]) &&
        are_long_sums(graph.constant(weights), summed_dims(graph, n, side)))
      return kRoundedParts;
  }
  return kAllParts;
}

}  // namespace

Result<Graph> permit_flushing(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    Op op = graph.op(n);
    if (class_of(graph.opcode(n)) == OpClass::contraction &&
        is_flushed(graph.type(graph.operands(n)[0]).dtype()))
      op =
          Op::get(op.opcode(), changed_attrs(op, {{"flush", true}, {"parts", parts_of(graph, n)}}));
    HONE_TRY(copy.node(n, op, HONE_TRY(transform_regions(graph, n, permit_flushing))));
  }
  return copy.finish();
}

}  // namespace hone
