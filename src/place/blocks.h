#pragma once

#include <cstdint>
#include <vector>

namespace hone {

// Points in an order: each block stands behind those that lead to it. Points that lead to each
// other are one block. Where there is a choice, blocks come in the order of their first points.
struct OrderedBlocks {
  std::vector<std::vector<uint32_t>> members;  // of each block, ascending
  std::vector<std::vector<uint32_t>> before;   // blocks that lead to each one, ascending
};

// `next` has the points that each point leads to.
OrderedBlocks ordered_blocks(const std::vector<std::vector<uint32_t>>& next);

}  // namespace hone
