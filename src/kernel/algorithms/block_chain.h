#pragma once

#include <optional>
#include <vector>

#include "kernel/facts.h"
#include "kernel/stages.h"

namespace hone {

// How the threads of a block share the work of a stage of a chain.
struct BlockStage {
  Stage stage;
  std::optional<NodeId> fold;  // the only op of the stage that combines many numbers
  int64_t points = 1;          // of the stage's results, in a block
  int64_t terms = 1;           // that each of them combines
  // Threads of a warp divide the terms of a point, and combine what they have. Else a thread has
  // all of a point.
  bool is_by_warp = false;
  int split = 0;            // the dim that they divide, of those of the fold: the longest
  int64_t split_terms = 1;  // the terms along it
  int64_t bytes = 0;        // of memory of the block, for what the stage keeps
};

// A chain by blocks keeps what the simplest chain keeps, and each sum or the like before the
// results. It takes the dims in blocks of which stages need a block's own points, or all.
Result<Schedule> simplest_block_chain(const KernelBody& body);

// The stages of the chain, or why a block cannot have them.
Result<std::vector<BlockStage>> block_stages(const KernelBody& body, const Schedule& schedule);

// The points of a dim of the results that a block has.
int64_t block_chain_points(const KernelBody& body, const Schedule& schedule, int dim);

int64_t block_chain_threads(const BlockChainFields& own);

// How often the threads of a block take a term, each of its own, until the stage is done.
int64_t steps_of_stage(const BlockStage& stage, int64_t threads);

}  // namespace hone
