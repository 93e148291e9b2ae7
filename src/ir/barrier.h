#pragma once

#include <algorithm>
#include <numeric>

#include "ir/op.h"

// A barrier parts what is computed again from what was computed before. Passes do not take its
// result for its operand, so that nodes behind it are not merged with others. It is a transpose
// that leaves all dims where they are, which is part of the kernel behind it and costs nothing. No
// pass of prepare() may remove such a transpose.

namespace hone {

inline Op barrier_op(int rank) {
  Ints permutation(static_cast<size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  return Op::get(Opcode::transpose, {{"permutation", std::move(permutation)}});
}

inline bool is_barrier(Op op) {
  if (op.opcode() != Opcode::transpose) return false;
  const Ints& permutation = op.ints("permutation");
  return op == barrier_op(static_cast<int>(permutation.size()));
}

}  // namespace hone
