#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/algorithms/block_tiles.h"
#include "kernel/facts.h"
#include "kernel/stages.h"

namespace hone {

// A block may take the row of a softmax in steps, and a stage has a part in it. The block keeps the
// scores and weights of a step alone. Beside these it has the maximum so far, the sum of
// exponentials so far, and that of their products. When a larger maximum comes, both sums are
// scaled to it.
enum class RowPart : uint8_t { none, scores, maxima, sums, weights, product };
struct RowSteps {
  RowPart part = RowPart::none;
  int dim = -1;             // of scores and weights, or of what the stage combines: the row
  int64_t length = 0;       // of the row
  int64_t step = 0;         // the points of it that a block takes at a time
  bool is_divided = false;  // weights are quotients by the sums: the product is divided instead
  int64_t steps() const { return part == RowPart::none ? 1 : (length + step - 1) / step; }
};

// How the warps of a block multiply 16-bit numbers of a stage on tensor cores. Each warp has some
// matrices of 16 rows and 8 columns.
struct WarpTiles {
  static constexpr std::array<int64_t, 2> kLines = {16, 8};  // of a matrix
  static constexpr int64_t kDepth = 16;                      // points of a product
  TiledProduct product = {};                                 // of the points that a block has
  std::vector<IndexExpr> index = {};  // of the product, by the dims of the stage's results
  DType numbers = DType::bf16;
  std::array<int64_t, 2> across = {};                        // warps
  std::array<int64_t, 2> own = {};                           // matrices of a warp
  int64_t sums() const { return 4 * own[0] * own[1]; }       // of a thread
  int64_t words() const { return 4 * own[0] + 2 * own[1]; }  // of a thread, for a product of each
  int64_t lines(size_t side) const { return across[side] * own[side] * kLines[side]; }
};

// How the threads of a block share the work of a stage of a chain.
struct BlockStage {
  Stage stage;
  std::optional<NodeId> fold;  // the only op of the stage that combines many numbers
  int64_t points = 1;          // of the stage's results, in a block and a step
  int64_t terms = 1;           // that each of them combines
  // Threads of a warp divide the terms of a point, and combine what they have. Else a thread has
  // all of a point.
  bool is_by_warp = false;
  int split = 0;            // the dim that they divide, of those of the fold: the longest
  int64_t split_terms = 1;  // the terms along it
  std::optional<WarpTiles> tiles = {};  // none: threads multiply
  RowSteps row = {};
  // The value that the stage keeps in memory of the block. Numbers of 16 bits have the type of
  // their sums, unless tensor cores multiply them. Then rows lie in other banks.
  std::optional<Type> held = {};  // none: the last stage
  int64_t bytes = 0;              // of memory of the block
};

// A chain by blocks keeps what the simplest chain keeps, and each sum or the like before the
// results. It takes the dims in blocks of which stages need a block's own points, or all. A tile of
// the dim behind those of the results is a step of the row of a softmax.
Result<Schedule> simplest_block_chain(const KernelBody& body);

// The stages of the chain, or why a block cannot have them.
Result<std::vector<BlockStage>> block_stages(const KernelBody& body, const Schedule& schedule);

// Blocks may take the row of a softmax in steps. This is the length of the row. It is none if no
// softmax can be taken so.
std::optional<int64_t> row_of_softmax(const KernelBody& body);

// The points of a dim of the results that a block has.
int64_t block_chain_points(const KernelBody& body, const Schedule& schedule, int dim);

int64_t block_chain_threads(const BlockChainFields& own);

// How often the threads of a block take a term, each of its own, until a step of the stage is done.
int64_t steps_of_stage(const BlockStage& stage, int64_t threads);

}  // namespace hone
