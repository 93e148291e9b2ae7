#include "kernel/words.h"

#include <algorithm>
#include <utility>

#include "ir/integer_facts.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// Along the dim whose index is the iter plus what does not depend on it; none: there is no such
// one.
std::optional<size_t> dim_along(std::span<const IndexExpr> index, int iter) {
  std::optional<size_t> along;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].mentions(iter)) continue;
    if (along || index[d].coefficient(iter) != 1) return std::nullopt;
    along = d;
  }
  return along;
}

std::vector<IndexExpr> substituted(const std::vector<IndexExpr>& index,
                                   const std::vector<IndexExpr>& iters) {
  std::vector<IndexExpr> all;
  for (const IndexExpr& expr : index) all.push_back(expr.substitute(iters));
  return all;
}

// The number that all elements of a value are, in code.
std::optional<int64_t> number_of(const Graph& graph, ValueId value) {
  NodeId node = graph.producer(value);
  while (only_moves(graph.opcode(node))) node = graph.producer(graph.operands(node)[0]);
  if (!is_constant(graph.opcode(node)) || !graph.constant(node).type().elements().is(1))
    return std::nullopt;
  return graph.constant(node).integer_at(0);
}

// The value that this one is made of byte by byte, with the same bits but for those of `flip`.
std::optional<ValueId> same_byte(const Graph& graph, ValueId value, uint8_t& flip) {
  const NodeId node = graph.producer(value);
  const std::span<const ValueId> operands = graph.operands(node);
  if (graph.opcode(node) == Opcode::bitcast && is_byte(graph.type(operands[0]).dtype()))
    return operands[0];
  if (graph.opcode(node) != Opcode::xor_) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<int64_t> number = number_of(graph, operands[i]);
    if (!number) continue;
    flip = static_cast<uint8_t>(flip ^ static_cast<uint8_t>(*number & 0xff));
    return operands[1 - i];
  }
  return std::nullopt;
}

// The whole number that the value is at an index, as code knows it. None: it depends on data.
std::optional<IndexExpr> whole_number_at(const Graph& graph, ValueId value,
                                         const std::vector<IndexExpr>& index) {
  const NodeId node = graph.producer(value);
  const Opcode opcode = graph.opcode(node);
  if (const std::optional<int64_t> number = number_of(graph, value)) return IndexExpr(*number);
  if (counts_places(opcode)) return index[static_cast<size_t>(graph.op(node).integer("axis"))];
  if (only_moves(opcode))
    return whole_number_at(graph, graph.operands(node)[0],
                           substituted(relation_of(graph, node).operands[0].at(0).index, index));
  if (!multiplies(opcode)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<int64_t> factor = number_of(graph, graph.operands(node)[i]);
    if (!factor) continue;
    const auto other = whole_number_at(graph, graph.operands(node)[1 - i], index);
    return other ? std::optional(*other * *factor) : std::nullopt;
  }
  return std::nullopt;
}

// The bytes whose lowest bits, or some bits of which, the value is, as the source will say. None:
// it is something else, or bits would come from the next byte of a word.
std::optional<ValueId> fields_of(const Graph& graph, const KernelSpace& space, int inner,
                                 WordSource& source) {
  const NodeId node = graph.producer(source.parameter);
  const std::span<const ValueId> operands = graph.operands(node);
  if (graph.type(source.parameter).dtype() != DType::u8) return std::nullopt;
  if (masks_bits(graph.opcode(node)) && !source.takes_fields() && source.flip == 0) {
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<int64_t> mask = number_of(graph, operands[i]);
      if (!mask || *mask < 1 || *mask > 0x7f || (*mask & (*mask + 1)) != 0) continue;
      source.mask = static_cast<uint8_t>(*mask);
      return operands[1 - i];
    }
  }
  if (!shifts_down(graph.opcode(node)) || !source.takes_fields() || source.shift != IndexExpr(0) ||
      source.flip != 0)
    return std::nullopt;
  const std::optional<IndexExpr> shift = whole_number_at(graph, operands[1], source.index);
  if (!shift || shift->mentions(inner)) return std::nullopt;
  std::vector<Range> ranges;
  for (const IterDim& dim : space.dims) ranges.push_back({0, dim.extent.range().high - 1});
  const Range reach = shift->over(ranges);
  if (reach.low < 0 || reach.high > 7 || (int64_t{source.mask} << reach.high) > 0xff)
    return std::nullopt;
  source.shift = *shift;
  return operands[0];
}

std::optional<Products> products_of(GraphView graph, NodeId node) {
  if (class_of(graph.opcode(node)) != OpClass::contraction) return std::nullopt;
  const DType lhs = graph.type(graph.operands(node)[0]).dtype();
  const DType rhs = graph.type(graph.operands(node)[1]).dtype();
  const DType sum = graph.type(graph.result(node)).dtype();
  if (is_byte(lhs) && is_byte(rhs) && lhs != rhs && sum == DType::i32) return Products::quads;
  const bool is_bf16 = lhs == DType::bf16 && rhs == DType::bf16;
  if (is_bf16 && (sum == DType::bf16 || sum == DType::f32) && graph.op(node).flag("flush"))
    return Products::pairs;
  return std::nullopt;
}

}  // namespace

std::optional<WordProducts> word_products(GraphView graph, NodeId node,
                                          const AccessRelation& relation) {
  const std::optional<Products> products = products_of(graph, node);
  if (!products) return std::nullopt;
  std::optional<WordProducts> best;
  std::pair<bool, int64_t> longest = {false, 0};
  for (size_t d = 0; d < relation.dims.size(); ++d) {
    const IterDim& dim = relation.dims[d];
    const int iter = static_cast<int>(d);
    if (dim.kind != IterKind::reduction || !dim.extent.is_static() ||
        !dim_along(relation.operands[0].at(0).index, iter) ||
        !dim_along(relation.operands[1].at(0).index, iter))
      continue;
    const int64_t extent = dim.extent.value();
    const WordProducts words = {*products, iter};
    const std::pair length(extent % words.each() == 0, extent);
    if (best && length < longest) continue;
    best = words;
    longest = length;
  }
  return best;
}

std::optional<WordSource> word_source(const KernelBody& body, const Contraction& contraction,
                                      const KernelSpace& space, const WordShape& shape,
                                      size_t side) {
  const int inner = shape.inner;
  if (space.dims[static_cast<size_t>(inner)].extent.value() % shape.each != 0) return std::nullopt;
  const Graph& graph = body.graph;
  const Access access = relation_of(graph, space.anchor).operands[side].at(0);
  const int iter = static_cast<int>(contraction.index.size()) + inner - space.parallel;
  // Only the first operand is read where there is no padding alone.
  for (const Guard& guard : access.guards)
    if (side == 0 && guard.value.mentions(iter)) return std::nullopt;
  WordSource source = {.parameter = graph.operands(space.anchor)[side],
                       .each = shape.each,
                       .index = contraction.reads[side]};
  while (!is_parameter(graph.opcode(graph.producer(source.parameter)))) {
    const NodeId node = graph.producer(source.parameter);
    if (only_moves(graph.opcode(node))) {
      source.index = substituted(relation_of(graph, node).operands[0].at(0).index, source.index);
      source.parameter = graph.operands(node)[0];
      continue;
    }
    std::optional<ValueId> before = same_byte(graph, source.parameter, source.flip);
    if (!before) before = fields_of(graph, space, inner, source);
    if (!before) return std::nullopt;
    source.parameter = *before;
  }
  const auto input = std::ranges::find(graph.inputs(), source.parameter) - graph.inputs().begin();
  const Layout& layout = body.inputs[static_cast<size_t>(input)];
  const std::optional<size_t> along = dim_along(source.index, inner);
  const Layout::Part& last = layout.parts.back();
  if (!along || last.dim != static_cast<int>(*along)) return std::nullopt;
  if (last.block > 1 && !last.is_inner) return std::nullopt;  // neighbours are a block apart
  // From now on the iter counts words.
  source.index[*along] = source.index[*along] + IndexExpr::iter(inner) * (shape.each - 1);
  const IndexExpr at = source.index[*along], word = floordiv(at, shape.each);
  source.index = stored_index(layout, source.index);
  const int64_t block = last.block;
  if (block == 1) return source;
  if (block % shape.each != 0 || !(word * shape.each == at)) return std::nullopt;
  for (size_t d = 0; d < source.index.size(); ++d) {
    const Layout::Part& part = layout.parts[d];
    if (part.dim != static_cast<int>(*along)) continue;
    source.index[d] = part.is_inner ? mod(word, block / shape.each) * shape.each
                                    : floordiv(word, block / shape.each);
  }
  return source;
}

Result<WordShape> word_shape(const KernelBody& body, const Contraction& contraction,
                             const KernelSpace& space, const Schedule& schedule) {
  const Graph& graph = body.graph;
  const GemmFields& own = schedule.get<GemmFields>();
  const std::optional<WordProducts> along =
      word_products(graph, space.anchor, relation_of(graph, space.anchor));
  if (!along || along->products != own.products)
    return own.products == Products::quads
               ? unsupported("quads need operands of u8 and i8, and sums of i32")
               : unsupported("pairs need operands of bf16, and denormal numbers that count as 0");
  WordShape shape = {.each = along->each()};
  if (own.products == Products::quads)
    shape.first_side = graph.type(graph.operands(space.anchor)[0]).dtype() == DType::u8 ? 0 : 1;
  shape.inner = along->iter - static_cast<int>(contraction.index.size()) + space.parallel;
  const int64_t extent = space.dims[static_cast<size_t>(shape.inner)].extent.value();
  const int64_t block = cache_block(schedule, space, shape.inner);
  const std::string_view products = name(own.products);
  if (block != extent && block % shape.each != 0)
    return unsupported("{} do not go with a block of {} of the reduction", products, block);
  shape.inner_words = (block + shape.each - 1) / shape.each;
  shape.words = shape.inner_words;
  for (int dim = space.parallel; dim < static_cast<int>(space.dims.size()); ++dim)
    if (dim != shape.inner) shape.words *= cache_block(schedule, space, dim);
  for (size_t side = 0; side < 2; ++side) {
    const Packing packing = side == 0 ? own.pack_lhs : own.pack_rhs;
    if (packing == Packing::no && !word_source(body, contraction, space, shape, side))
      return unsupported("{} need the words of operand {} side by side", products, side);
  }
  return shape;
}

}  // namespace hone
