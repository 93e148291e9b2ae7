#pragma once

#include <span>

#include "alloc/problem.h"

// The placers work on these: the buffers of one space as rigid blocks in compressed time.

namespace hone {

// The bytes [low, high) of a block are in use in the sections [first, end).
struct Slab {
  int32_t first = 0;
  int32_t end = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// Buffers that move together: one, or all that are aliases of each other.
struct Block {
  int64_t size = 0;
  // The offset leaves the remainder `phase`.
  int64_t alignment = 1;
  int64_t phase = 0;
  std::optional<int64_t> offset = {};
  // Sorted by section, then by height; apart from each other.
  std::vector<Slab> slabs = {};

  int32_t first() const { return slabs.front().first; }
  int32_t end() const;  // behind the last section
  bool is_box() const { return slabs.size() == 1 && slabs[0].low == 0 && slabs[0].high == size; }
};

// The least offset from `from` on that the alignment allows.
inline int64_t aligned_up(const Block& block, int64_t from) {
  const int64_t behind = (from - block.phase) % block.alignment;
  if (behind == 0) return from;
  return from + (behind < 0 ? -behind : block.alignment - behind);
}

// Sections are stretches of time in which the same buffers are in use. A section is left out if no
// more buffers are in use than in the one before or behind. Blocks that are never in use are not
// here.
struct BlockPacking {
  std::vector<Block> blocks;
  int32_t sections = 0;
  std::vector<int64_t> moments;  // per section: where it begins

  // Per block: the buffers in it, and how far behind its begin they lie.
  struct Part {
    uint32_t buffer;
    int64_t shift;
  };
  std::vector<std::vector<Part>> parts;
};

// The least that each section uses: the sum of the slabs.
std::vector<int64_t> loads(const BlockPacking& packing);

// The same blocks, that of the order's first number first. An answer about a space in another order
// is as true; how long it takes to find differs.
BlockPacking in_order(const BlockPacking& packing, std::span<const uint32_t> order);

// Divides all numbers of a packing: no block need ever lie elsewhere than at its multiples.
int64_t unit_of(const BlockPacking& packing);

struct Blocks {
  std::vector<BlockPacking> spaces;  // blocks in an order that that of the buffers does not change
  // One or two buffers whose offsets or alignments contradict each other.
  std::vector<uint32_t> contradiction = {};
  // Per buffer: an offset for those that are never in use, which the blocks do not hold.
  std::vector<int64_t> offsets = {};
};

// The problem is well formed. An error is a limit: too many aliases of one buffer.
Result<Blocks> blocks_of(const MemoryProblem& problem);

// The offsets of the blocks of a space, as offsets of its buffers.
void spread(const BlockPacking& packing, std::span<const int64_t> block_offsets,
            std::vector<int64_t>& buffer_offsets);

// A placement of a packing's blocks.
struct Placement {
  std::vector<int64_t> offsets;  // per block
  int64_t height = 0;
};

}  // namespace hone
