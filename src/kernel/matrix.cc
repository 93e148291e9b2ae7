#include "kernel/matrix.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ir/ops/contraction.h"

namespace hone {
namespace {

// The one that words lie along in memory; else the dim of the reduction with the most points, the
// last of equal ones.
int inner_dim(const KernelBody& body, const KernelSpace& space, const Contraction& contraction) {
  const std::optional<WordProducts> words =
      word_products(body.graph, space.anchor, relation_of(body.graph, space.anchor));
  if (words) return words->iter - static_cast<int>(contraction.index.size()) + space.parallel;
  int inner = space.parallel;
  for (int dim = inner; dim < static_cast<int>(space.dims.size()); ++dim)
    if (space.dims[static_cast<size_t>(dim)].extent.value() >=
        space.dims[static_cast<size_t>(inner)].extent.value())
      inner = dim;
  return inner;
}

// Rows and columns of a register tile: rows along dims of one operand, columns along the dim in
// lanes, of the other one.
Status set_tile(const Contraction& contraction, const KernelSpace& space, const Schedule& schedule,
                MatrixShape& shape) {
  if (schedule.lanes.size() != 1 || schedule.lanes[0].count != MatrixShape::kWords)
    return unsupported("the matrix unit needs {} lanes", MatrixShape::kWords);
  const auto has = [&](size_t side, int dim) {
    return contraction.sides[side][static_cast<size_t>(dim)];
  };
  shape.column = schedule.lanes[0].dim;
  if (has(0, shape.column) == has(1, shape.column))
    return unsupported("the matrix unit cannot have lanes along both operands");
  shape.row_side = has(0, shape.column) ? 1 : 0;
  shape.rows = 1;
  for (int dim = 0; dim < space.parallel; ++dim) {
    const int64_t points = register_tile(schedule, dim);
    if (dim == shape.column || points == 1) continue;
    if (!has(shape.row_side, dim) || has(1 - shape.row_side, dim))
      return unsupported("the matrix unit cannot have a tile along dim {}", dim);
    shape.rows *= points;
    if (shape.rows > MatrixShape::kMostRows) break;
  }
  shape.columns = register_tile(schedule, shape.column);
  if (shape.rows > MatrixShape::kMostRows || shape.columns > MatrixShape::kMostRows)
    return unsupported("the matrix unit cannot have tiles of more than {} rows or columns",
                       MatrixShape::kMostRows);
  return {};
}

}  // namespace

std::optional<MatrixNumbers> matrix_numbers(GraphView graph, NodeId node) {
  if (class_of(graph.opcode(node)) != OpClass::contraction) return std::nullopt;
  const DType lhs = graph.type(graph.operands(node)[0]).dtype();
  const DType rhs = graph.type(graph.operands(node)[1]).dtype();
  const DType sum = graph.type(graph.result(node)).dtype();
  const auto are_bytes = [](DType dtype) { return dtype == DType::u8 || dtype == DType::i8; };
  if (are_bytes(lhs) && are_bytes(rhs) && sum == DType::i32)
    return MatrixNumbers{.are_quads = true};
  if (lhs != rhs) return std::nullopt;
  // 11 bits in two parts, without the product of the low ones, which a sum of f16 has no room for.
  // The least f16 is far above the denormal numbers of bf16.
  if (lhs == DType::f16 && sum == DType::f16) return MatrixNumbers{.parts = 2};
  if (!graph.op(node).flag("flush")) return std::nullopt;
  if (lhs == DType::bf16 && (sum == DType::bf16 || sum == DType::f32)) return MatrixNumbers{};
  if (lhs == DType::f32 && sum == DType::f32) {
    const bool are_rounded = graph.op(node).integer("parts") == kRoundedParts;
    return MatrixNumbers{.parts = are_rounded ? kRoundedParts : kAllParts,
                         .are_rounded = are_rounded};
  }
  return std::nullopt;
}

bool has_matrix_unit(const Target& target, const MatrixNumbers& numbers) {
  return target.extensions.contains(numbers.are_quads ? Extension::amx_int8 : Extension::amx_bf16);
}

Result<MatrixShape> matrix_shape(const KernelBody& body, const Contraction& contraction,
                                 const KernelSpace& space, const Schedule& schedule) {
  const GemmFields& own = schedule.get<GemmFields>();
  const std::optional<MatrixNumbers> numbers = matrix_numbers(body.graph, space.anchor);
  if (!numbers) return unsupported("the kernel has other numbers than the matrix unit takes");
  if (own.pack_lhs != Packing::panels || own.pack_rhs != Packing::panels)
    return unsupported("the matrix unit needs panels of both operands");
  if (space.parallel == static_cast<int>(space.dims.size()))
    return unsupported("the matrix unit needs a reduction");
  MatrixShape shape = {.numbers = *numbers};
  HONE_TRY(set_tile(contraction, space, schedule, shape));
  shape.inner = inner_dim(body, space, contraction);
  shape.steps = 1;
  for (int dim = space.parallel; dim < static_cast<int>(space.dims.size()); ++dim) {
    const int64_t block = cache_block(schedule, space, dim);
    if (dim != shape.inner && block != space.dims[static_cast<size_t>(dim)].extent.value())
      return unsupported("the matrix unit cannot have a block of dim {} of the reduction", dim);
    if (dim != shape.inner) shape.steps *= block;
  }
  shape.inner_steps = (cache_block(schedule, space, shape.inner) + shape.step() - 1) / shape.step();
  shape.steps *= shape.inner_steps;
  return shape;
}

}  // namespace hone
