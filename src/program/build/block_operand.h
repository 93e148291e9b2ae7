#pragma once

#include <optional>
#include <vector>

#include "kernel/algorithms/block_tiles.h"

namespace hone {

// How a block brings an operand of a tiled product to its memory.
struct BlockOperand {
  bool is_depth_next = false;  // neighbours along the last dim of the reduction are so in memory
  bool is_along = false;       // rows of the block's memory go along the reduction, for warps
  // The elements that one copy takes, 16 bytes at most. They lie side by side in both memories, and
  // begin where a copy may begin. More than one: the operand is a parameter, whose last dim in
  // memory is all of the rows, the columns or the reduction.
  int64_t piece = 1;
  // If the operand is a parameter of such numbers as the block has: which one it is, and where a
  // point lies in its memory, by the space's dims.
  std::optional<size_t> input = {};
  std::vector<IndexExpr> reads = {};
  // The dim in that memory along which rows of a box lie: the lines of the tile, or the reduction.
  // None: threads copy the operand.
  std::optional<int> box_axis = {};
};
BlockOperand block_operand(const KernelFacts& facts, const TiledProduct& product,
                           const BlockTile& tile, size_t side);

}  // namespace hone
