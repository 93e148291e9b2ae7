#pragma once

#include <span>
#include <vector>

#include "kernel/kernel_body.h"

// A chain computes the results of a body block by block, each block in stages. A stage is like a
// kernel of its own, but what it leaves for later stages lies in scratch, a part that fits the
// block. So the scores of an attention never leave the cache, and the gates of a recurrent cell
// are read from where its product has left them.

namespace hone {

struct KernelFacts;

// The points that a block needs of a dim of a value: side by side, so that blocks may overlap. Some
// may lie outside of the value, where a reader has padding: these are arbitrary.
struct Along {
  int dim = -1;  // of the whole's results, taken in blocks; -1: a block needs all points
  // The points that point p of the dim needs: `window` points from stride * p + first on.
  int64_t stride = 1, first = 0, window = 1;

  bool is_whole() const { return dim < 0; }
  int64_t points(int64_t block) const { return stride * (block - 1) + window; }
  IndexExpr origin(const IndexExpr& block) const { return block * stride + first; }
  bool operator==(const Along&) const = default;
};

struct Stage {
  // Its parameters are those of the whole that it reads, then what earlier stages have kept; its
  // results what it keeps, or those of the whole. `window` is the largest block. Scratch holds what
  // a conv makes as its image lies, as far as blocks allow, and everything else row-major.
  KernelBody body;
  // Per parameter of the stage: a parameter of the whole, or, counted on, a stage.
  std::vector<size_t> sources;
  std::vector<Along> along;  // per dim of its results
};

// The stages of a chain, or why there are none. `keep`, `order` and `block` of the schedule have to
// fit the body. In each dim of a kept value, every block has to need all points or points side by
// side.
Result<std::vector<Stage>> stages_of(const KernelBody& body, const Schedule& schedule);

// The values that nodes with these numbers make, which a chain keeps; or why it cannot.
Result<std::vector<ValueId>> kept_values(const Graph& graph, std::span<const int64_t> keep);

// A value from which this one is moved, without being computed.
ValueId moved_from(const Graph& graph, ValueId value);

// The simplest chain, or why none can be carried out. It keeps the results of contractions that ops
// other than elementwise ones read. It also keeps values made from sums for contractions or
// windows. Blocks are the smallest, in all dims along which no kept value is computed twice, but
// for overlaps along one dim.
Result<Schedule> simplest_chain(const KernelBody& body);
Result<Schedule> simplest_chain(const KernelFacts& facts);  // of a body that it has looked at

// The points of a dim that a block has at most.
int64_t block_points(const KernelBody& body, const Schedule& schedule, int dim);

}  // namespace hone
