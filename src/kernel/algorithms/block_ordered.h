#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/ops/indexed_dims.h"
#include "kernel/kernel_body.h"

// How blocks of a GPU's threads share the work of one ordered op. The schedule is legal.

namespace hone {

// Rows of a cumulative op. A block has a part of a row, in steps of `step` elements. A slot is a
// thread, which has neighbours in a step. If rows go across memory, a block has 32 of them side by
// side, and a slot is a warp.
struct ScanShape {
  int64_t threads = 0, points = 1;
  int64_t columns = 1;  // rows of a block
  int column_dim = -1;  // along which they are neighbours; -1: a block has one row
  int64_t steps = 1;    // of a part
  int64_t parts = 1;    // of a row, none of them empty
  int64_t slots() const { return threads / columns; }
  int64_t step() const { return slots() * points; }
  int64_t part() const { return step() * steps; }
  // Between the elements of two slots in memory of the block: odd, so that threads meet other
  // banks.
  int64_t pitch() const { return columns > 1 ? points : points + (points + 1) % 2; }
};
ScanShape scan_shape(const KernelBody& body, const BlockScanFields& own);

// A row that is sorted: by pieces of 2 * `threads * pairs` elements. If only the first of a row are
// asked for, no piece keeps more.
struct SortShape {
  int64_t length = 0;
  int64_t kept = 0;  // of these, as many as are asked for
  int64_t threads = 0, pairs = 1;
  int64_t piece() const { return 2 * threads * pairs; }
  int64_t pieces() const { return (length + piece() - 1) / piece(); }
  int64_t run() const { return std::min(piece(), kept); }  // of a piece
};
inline SortShape sort_shape(int64_t length, int64_t kept, int warps, int pairs) {
  return {length, kept, int64_t{warps} * 32, pairs};
}

// The dims of the operand that a lookup of a scatter decides, and where it does. Windows that have
// points along such dims are taken point by point: those are updates with a place each.
struct ScatterPlaces {
  explicit ScatterPlaces(const KernelBody& body);

  Type x, indices, updates;
  Op op;
  IndexedDims dims;
  struct Chosen {
    int dim = 0;                   // of the operand
    int component = -1;            // of the index; -1: a batch dim
    int batch = -1;                // the place of its partner among the dims of lookups
    int window = -1;               // the dim of the updates that runs along it; -1: none
    int64_t size = 0, stride = 0;  // a place is the sum of index * stride
  };
  std::vector<Chosen> chosen;
  std::vector<int> numbered;    // dims of the updates that decide the place, in order
  std::vector<size_t> windows;  // the others, by their number in dims.window_dims
  int64_t places = 1;
  int64_t lookups = 1;  // points of the numbered dims
};

// The blocks of the launch that has blocks, for prices that are learned.
struct OrderedShape {
  int64_t blocks = 0, threads = 0, bytes = 0;  // bytes of memory of a block
};
bool is_ordered_by_blocks(const Schedule& schedule);  // else it has no such blocks
OrderedShape ordered_shape(const KernelBody& body, const Schedule& schedule);

}  // namespace hone
