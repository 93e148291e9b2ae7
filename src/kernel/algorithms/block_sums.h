#pragma once

#include <optional>

#include "kernel/facts.h"

namespace hone {

// How threads share the sums of block_sums. A block has `columns` results. If a product has few
// rows, a block has those of all rows, since each reads the same columns of an operand. A slot is a
// thread, or a warp if `lanes_dim` is there, of each block for a column. Dims of points are
// positions in the relation of the reduction.
struct SumsShape {
  int64_t threads = 0, columns = 1, splits = 1;
  int64_t rows = 1;
  std::optional<int> rows_dim = {};   // of the results
  int slots_dim = 0;                  // whose points slots divide
  std::optional<int> lanes_dim = {};  // whose points the threads of a warp divide
  int64_t slots = 1;                  // in a block
  int64_t parts() const { return slots * splits; }
};
SumsShape sums_shape(const KernelBody& body, NodeId node, const Schedule& schedule);

// The reduction that each result needs, at its own index; or why threads cannot share it. Only the
// body counts.
Result<NodeId> summed_node(const KernelBody& body, const KernelSpace& space);

}  // namespace hone
