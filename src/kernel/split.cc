#include "kernel/split.h"

#include <algorithm>

#include "kernel/facts.h"

namespace hone {
namespace {

// The dim of the reduction with the most points; the last of equal ones.
int inner_dim(const KernelSpace& space) {
  int inner = space.parallel;
  for (int dim = inner; dim < static_cast<int>(space.dims.size()); ++dim)
    if (space.dims[static_cast<size_t>(dim)].extent.value() >=
        space.dims[static_cast<size_t>(inner)].extent.value())
      inner = dim;
  return inner;
}

}  // namespace

Result<SplitShape> split_shape(const Contraction& contraction, const KernelSpace& space,
                               const Schedule& schedule) {
  const GemmFields& own = schedule.get<GemmFields>();
  if (own.pack_lhs != Packing::panels || own.pack_rhs != Packing::panels)
    return unsupported("split products without panels of both operands");
  if (schedule.lanes.size() != 1) return unsupported("split products without lanes");
  if (space.parallel == static_cast<int>(space.dims.size()))
    return unsupported("split products without a reduction");
  SplitShape shape;
  shape.column = schedule.lanes[0].dim;
  const auto has = [&](size_t side, int dim) {
    return contraction.sides[side][static_cast<size_t>(dim)];
  };
  if (has(0, shape.column) == has(1, shape.column))
    return unsupported("split products with lanes along both operands");
  shape.row_side = has(0, shape.column) ? 1 : 0;
  shape.row = -1;
  for (int dim = 0; dim < space.parallel; ++dim) {
    if (dim == shape.column || register_tile(schedule, dim) == 1) continue;
    if (shape.row >= 0 || !has(shape.row_side, dim) || has(1 - shape.row_side, dim))
      return unsupported("split products with a tile along dim {}", dim);
    shape.row = dim;
  }
  if (shape.row < 0) return unsupported("split products without rows");
  shape.rows = register_tile(schedule, shape.row);
  shape.columns = register_tile(schedule, shape.column);
  for (int64_t count : {shape.rows, shape.columns})
    if (count != 16 && count != 32)
      return unsupported("split products in tiles of {}, not of 16 or 32", count);
  shape.inner = inner_dim(space);
  shape.steps = 1;
  for (int dim = space.parallel; dim < static_cast<int>(space.dims.size()); ++dim) {
    const int64_t block = cache_block(schedule, space, dim);
    if (dim != shape.inner && block != space.dims[static_cast<size_t>(dim)].extent.value())
      return unsupported("split products with a block of dim {} of the reduction", dim);
    if (dim != shape.inner) shape.steps *= block;
  }
  shape.inner_steps =
      (cache_block(schedule, space, shape.inner) + SplitShape::kStep - 1) / SplitShape::kStep;
  shape.steps *= shape.inner_steps;
  return shape;
}

}  // namespace hone
