#pragma once

#include <array>
#include <vector>

#include "kernel/kernel_body.h"

namespace hone {

// Describes how the results of a body need its anchor, a dot or conv. Every point of the results
// needs one point of the anchor, and no two need the same. Sizes are numbers above 0.
struct Contraction {
  std::vector<IndexExpr> index;  // of the anchor's result, by the results' dims
  // Per operand of the anchor: the results' dims that it depends on. Rows are those of the first
  // alone, columns those of the second alone.
  std::array<std::vector<bool>, 2> sides;
  std::array<std::vector<IndexExpr>, 2> reads;  // per operand: where, by the space's dims
  std::array<bool, 2> has_holes = {};  // more is left out of an operand than what lies outside
};

bool has_open_sizes(const KernelSpace& space);  // of results or of the reduction

// The count of a dim's tile; 1 if it has none.
int64_t tile_of(const std::vector<Tile>& tiles, int dim);

// For a gemm schedule: the points of a dim that are in registers together, and those that stay in a
// cache together. The latter are whole tiles; without a block they are all of the reduction.
int64_t register_tile(const Schedule& schedule, int dim);
int64_t cache_block(const Schedule& schedule, const KernelSpace& space, int dim);

// How many register tiles a block has along the dims, and how many points a tile.
struct BlockShape {
  int64_t tiles = 1;
  int64_t points = 1;
};
BlockShape block_shape(const Schedule& schedule, const KernelSpace& space,
                       const std::vector<bool>& dims);
int64_t block_depth(const Schedule& schedule, const KernelSpace& space);  // of the reduction
bool blocks_reduction(const Schedule& schedule, const KernelSpace& space);

// The part of an operand that a block of a gemm needs, including places outside of the operand. It
// is given as points per dim of the operand, from the first point that the block reads. Or why
// there is none.
Result<std::vector<int64_t>> window_of(const Contraction& contraction, const KernelSpace& space,
                                       const Schedule& schedule, size_t side);

}  // namespace hone
