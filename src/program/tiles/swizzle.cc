#include "program/tiles/swizzle.h"

namespace hone {

// An exclusive or is a sum of remainders, bit by bit.
std::vector<IndexExpr> swizzled_index(DType dtype, std::vector<IndexExpr> index) {
  const int64_t piece = swizzled_piece(dtype);
  const IndexExpr row = index[index.size() - 2], at = index.back();
  const IndexExpr from = floordiv(at, piece), turn = mod(row, kSwizzledRows);
  IndexExpr to = 0;
  for (int64_t bit = 1; bit < kSwizzledRows; bit *= 2)
    to = to + mod(floordiv(from, bit) + floordiv(turn, bit), 2) * bit;
  index.back() = to * piece + mod(at, piece);
  return index;
}

}  // namespace hone
