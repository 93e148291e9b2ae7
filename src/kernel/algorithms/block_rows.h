#pragma once

#include <vector>

#include "kernel/kernel_body.h"

namespace hone {

// The work that threads of a block share for a row: the part of the results that has one point of
// the dims which blocks divide.
struct BlockRow {
  // A reduction that all of the row shares.
  struct Shared {
    NodeId node;
    std::vector<IndexExpr> index;  // of its result, by the results' dims
  };
  // A parameter that is read at the same points by several parts of the row.
  struct Kept {
    ValueId parameter;
    std::vector<IndexExpr> index;  // by the results' dims; the dim behind them is the point
    Dim points;
  };
  // A place where results need a parameter.
  struct Read {
    ValueId parameter;
    std::vector<IndexExpr> index;  // by the results' dims, then dims of reductions
  };
  std::vector<Shared> shared;  // those that others need stand before them
  std::vector<Kept> kept;
  std::vector<Read> reads;  // those of a parameter stand together
};

// Or why blocks cannot compute rows of the body. Only the schedule's `order` and `threads` count.
Result<BlockRow> block_row(const KernelBody& body, const KernelSpace& space,
                           const Schedule& schedule);

// The dim of a reduction whose points threads divide: a position in its relation.
int divided_dim(const AccessRelation& relation);

int64_t row_threads(const BlockRowsFields& own);
// Points of a dim that a thread has at most.
Dim points_of_thread(const Dim& extent, int64_t threads);

inline constexpr int64_t kMostKept = 32;  // numbers of a row in registers of a thread

}  // namespace hone
