#pragma once

#include <utility>
#include <vector>

#include "program/tiles/tiles.h"

namespace hone {

// Where the numbers of a swizzled buffer lie. Its last dim is a row of 128 bytes, the dim before
// has a multiple of 8 of them. Piece p of 16 bytes of row r lies at piece p xor (r mod 8) of its
// row, as copies and products on Hopper have it. The buffer begins at a multiple of 1,024 bytes.

inline constexpr int64_t kSwizzledRowBytes = 128, kSwizzledRows = 8;
inline constexpr int64_t kSwizzledAlignment = kSwizzledRowBytes * kSwizzledRows;

// Elements of a row and of a piece.
inline int64_t swizzled_row(DType dtype) { return kSwizzledRowBytes * 8 / bits(dtype); }
inline int64_t swizzled_piece(DType dtype) { return tile::kMatrixRowBytes * 8 / bits(dtype); }

// The place of an element, counted over the buffer, at which it would lie otherwise.
inline int64_t swizzled_place(DType dtype, int64_t place) {
  const int64_t row = place / swizzled_row(dtype), piece = swizzled_piece(dtype);
  return place ^ (row % kSwizzledRows * piece);
}

// The same as an index of the buffer.
std::vector<IndexExpr> swizzled_index(DType dtype, std::vector<IndexExpr> index);

}  // namespace hone
