#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/facts.h"
#include "kernel/matrix.h"

namespace hone {

// A contraction as a product of two matrices, once for each point of the other dims. Several dims
// of the results, or of the reduction, are counted as one.
struct TiledProduct {
  std::array<std::vector<int>, 2> sides;  // dims of the results: rows and columns
  std::vector<int> others;                // on which both operands depend, or none
  std::vector<int> depth;                 // dims of the reduction
  std::array<int64_t, 2> lines = {1, 1};  // points of rows and columns
  int64_t points = 1;                     // of the reduction
  int64_t times = 1;                      // points of the others
};

// Or why there is none.
Result<TiledProduct> tiled_product(const KernelFacts& facts);

// The words that tensor cores multiply for the numbers of both operands. bf16 and f16 are taken as
// they are. f32 becomes parts of bf16, or tf32 where that was asked for (kPartsAttr). None: tensor
// cores do not multiply such numbers.
std::optional<MatrixNumbers> tensor_numbers(const KernelFacts& facts);

// How a block takes its tile.
struct BlockTile {
  std::array<int64_t, 2> lines;  // rows and columns of the tile
  std::array<int64_t, 2> own;    // of a thread, or of a warp on tensor cores
  int64_t depth;                 // points of the reduction in a step
  int64_t stages;                // steps whose operands are in memory at a time
  int64_t splits;                // parts of the reduction, of which a block takes one
  int64_t shares;                // blocks that share the steps of all tiles; 0: they do not
  bool by_warps;
  bool by_groups;         // of warps, on Hopper: each warp has 16 rows and all columns
  MatrixNumbers numbers;  // on tensor cores; else one part
  DType stored;           // the type of operands in memory of the block
  DType summed;           // of sums, in registers and as parts in memory
  // In memory an operand is [stages, depth, lines]; for warps it is [stages, parts * lines, depth],
  // part by part, which has words along the reduction. Elements at the end of each line keep lines
  // in other banks. For warps pieces of a line change places instead (swizzled), for groups of them
  // by the memory itself (TileBuffer::is_swizzled).
  std::array<int64_t, 2> pitch;

  int64_t piece() const { return 128 / bits(stored); }                   // elements of 16 bytes
  int64_t points_of_row() const { return 8 * piece(); }                  // a step of warpgroups
  int64_t across(size_t side) const { return lines[side] / own[side]; }  // threads or warps
  int64_t threads() const;
  int64_t rows_in_memory(size_t side) const {
    return by_warps ? numbers.parts * lines[side] : depth;
  }
  int64_t bytes() const;  // of the memory of the block
};
BlockTile block_tile(const KernelFacts& facts, const BlockTilesFields& own);

// The place of an element in a line for warps: pieces of 16 bytes are rotated along their line. A
// warp reads those of eight lines at a time, which are in other banks so. `depth` is a multiple of
// `whole`, which divides a piece: the place is seen to be one, too.
IndexExpr swizzled(const BlockTile& tile, const IndexExpr& line, const IndexExpr& depth,
                   int64_t whole);

// Steps of a part of the reduction: all but the last parts have as many.
int64_t steps_of_split(const TiledProduct& product, const BlockTile& tile);

// How blocks share the steps of all tiles evenly, tile by tile: step s of tile t is number
// t * steps + s. Block b has `share` of them, from number b * share on; the last one has the rest.
// So several blocks may have steps of a tile, and each of them has a part of its sums.
struct TileShares {
  int64_t tiles, steps;  // of the product; of a tile
  int64_t share, blocks;
  int64_t all() const { return tiles * steps; }
  // Parts of a tile but one, and its first block. A tile of one block has no parts.
  IndexExpr more_parts(const IndexExpr& tile) const {
    return floordiv(tile * steps + IndexExpr(steps - 1), share) - first_block(tile);
  }
  IndexExpr first_block(const IndexExpr& tile) const { return floordiv(tile * steps, share); }
  // Ends of blocks within tiles, and the tiles that have such an end.
  int64_t ends_within() const;
  int64_t divided() const;
  int64_t most_parts() const;  // of a tile
  int64_t most_tiles() const;  // of a block
};
// Refused: more steps than their numbers can tell.
Result<TileShares> tile_shares(const TiledProduct& product, const BlockTile& tile);
std::array<int64_t, 2> tiles_of_sides(const TiledProduct& product, const BlockTile& tile);
int64_t tiles_of(const TiledProduct& product, const BlockTile& tile);
int64_t blocks_of(const TiledProduct& product, const BlockTile& tile);

// The second phase adds these, if blocks leave parts of sums in memory.
struct PartSums {
  int64_t sums = 0;    // threads, each with a point: that of a tile, or one that has no parts
  int64_t parts = 1;   // that each of them may read
  int64_t stored = 0;  // parts of all points
};
PartSums part_sums(const TiledProduct& product, const BlockTile& tile);

// Sums in the registers of a thread.
int64_t sums_of_thread(const BlockTile& tile);

}  // namespace hone
