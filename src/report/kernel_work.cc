#include "report/kernel_work.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "ir/access.h"
#include "ir/op_facts.h"
#include "ir/ops/conv_order.h"
#include "kernel/algorithms/algorithm.h"
#include "kernel/algorithms/block_tiles.h"
#include "kernel/facts.h"
#include "kernel/group_work.h"
#include "kernel/matrix.h"

namespace hone {
namespace {

double operations_of(const Graph& graph, NodeId node) {
  const std::vector<Type> operands = graph.operand_types(node);
  return flops({graph.op(node), operands}, graph.result_types(node));
}

// The peak of vectors of the narrowest type that the kernel computes in. 16-bit reals are computed
// in f32.
double vector_peak(const Graph& graph, const Target& target) {
  constexpr double kWidth = 4;  // bytes, of f32
  const double f32 = target.peak(DType::f32);
  double peak = 0;
  for (NodeId node : graph.nodes()) {
    if (is_leaf(graph.opcode(node))) continue;
    for (Type type : graph.result_types(node)) {
      const DType dtype = type.dtype();
      const double bytes = std::max(1.0, bits(dtype) / 8.0);
      const double narrow = is_real(dtype) ? std::max(bytes, kWidth) : bytes;
      const double own = dtype == DType::f64 ? target.peak(dtype) : 0;
      peak = std::max(peak, own > 0 ? own : f32 * kWidth / narrow);
    }
  }
  return peak;
}

// The way a schedule multiplies numbers; plain, if it has no choice.
Products products_of(const Schedule& schedule) {
  if (const auto* gemm = schedule.if_is<GemmFields>()) return gemm->products;
  if (const auto* tiles = schedule.if_is<BlockTilesFields>()) return tiles->products;
  return Products::plain;
}

// The numbers that a matrix unit multiplies for those of the contraction.
std::optional<MatrixNumbers> numbers_of(const KernelFacts& facts, const Target& target) {
  if (target.gpu) return tensor_numbers(facts);
  return matrix_numbers(facts.body.graph, facts.space.anchor);
}

// The peak of the unit by which numbers are multiplied; 0: by vectors of the type.
double unit_peak(const KernelFacts& facts, const Schedule& schedule, const Target& target) {
  if (!facts.space.has_anchor()) return 0;
  const Products products = products_of(schedule);
  const auto numbers = numbers_of(facts, target);
  if (numbers && numbers->are_tf32)
    return products == Products::matrix ? target.peak(DType::bf16) / 2 : 0;
  switch (products) {
    case Products::plain: return 0;
    case Products::quads: return target.peak(DType::i8);
    case Products::pairs: return target.peak(DType::bf16);
    case Products::matrix:
      return target.peak(numbers && numbers->are_quads ? DType::i8 : DType::bf16);
  }
  return 0;
}

std::string sizes_text(std::span<const Dim> sizes) {
  std::vector<std::string> texts;
  for (Dim size : sizes) texts.push_back(size.to_string());
  return join(texts, "x");
}

// "conv 3x3", "depthwise conv 5x5", "reduce sum".
std::string op_text(const Graph& graph, NodeId node) {
  const Op op = graph.op(node);
  std::string text(op.name());
  if (std::ranges::find(op.def().attrs, "kind", &AttrSpec::name) != op.def().attrs.end())
    return text + " " + op.word("kind");
  if (!is_convolution(graph.opcode(node))) return text;
  const Type weights = graph.type(graph.operands(node)[1]);
  const ConvOrder order = *parse_conv_order(op.word("order"), weights.rank() - 2);
  std::vector<Dim> window;
  for (int dim : order.kernel_spatial) window.push_back(weights.dim(dim));
  const bool is_depthwise = op.integer("groups") > 1 && weights.dim(order.kernel_input).is(1);
  return fmt::format("{}{} {}", is_depthwise ? "depthwise " : "", text, sizes_text(window));
}

}  // namespace

KernelWork work_of(const KernelBody& body, const Schedule& schedule, const Target& target) {
  KernelWork work = {.operations = work_of(body).inherent, .peak = vector_peak(body.graph, target)};
  if (!body.graph.is_static()) return work;
  const KernelFacts facts(body);
  const AlgorithmDef& algorithm = def_of(schedule.algorithm());
  const auto own = algorithm.product(facts, schedule);
  const KernelFacts product(own ? own->body : body);
  const Schedule& multiplied = own ? own->schedule : schedule;
  std::vector<const Schedule*> parts = {&multiplied};
  if (const auto* chain = schedule.if_is<ChainFields>())
    for (const Schedule& stage : chain->stages) parts.push_back(&stage);
  for (const Schedule* part : parts)
    work.peak = std::max(work.peak, unit_peak(product, *part, target));
  if (!facts.space.has_anchor()) return work;
  const double contraction = operations_of(body.graph, facts.space.anchor);
  const double share = algorithm.share_of_products({body, facts, target}, schedule);
  work.operations -= contraction * (1 - share);
  const auto numbers = numbers_of(product, target);
  if (products_of(multiplied) == Products::matrix && numbers)
    work.operations += contraction * share * static_cast<double>(numbers->products() - 1);
  return work;
}

std::string computes_text(const KernelBody& body) {
  constexpr size_t kMostOps = 4;
  const Graph& graph = body.graph;
  std::vector<std::string> computes, moves;
  for (NodeId node : graph.nodes()) {
    const OpClass of = class_of(graph.opcode(node));
    if (of == OpClass::leaf) continue;
    const bool is_arithmetic = graph.op(node).def().flops_per_point > 0;
    std::vector<std::string>& kind = is_arithmetic ? computes : moves;
    if (std::string text = op_text(graph, node); kind.empty() || kind.back() != text)
      kind.push_back(std::move(text));
  }
  const std::vector<std::string>& shown = computes.empty() ? moves : computes;
  const std::span<const std::string> first(shown.data(), std::min(kMostOps, shown.size()));
  const std::string text = join(first, ", ");
  return shown.size() > kMostOps ? fmt::format("{} +{}", text, shown.size() - kMostOps) : text;
}

}  // namespace hone
